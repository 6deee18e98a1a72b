import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { MeshConfig_AccessLogEncoding as Encoding, type MeshConfig } from "../../gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import { logFormatFault } from "../../model/format-operators.ts";
import type { Place } from "../checks/place.ts";

/** Formats of access logs, of the mesh and of its providers. What Envoy would refuse of them does not take effect, and all else does. */
export function validateLogFormats(mesh: MeshConfig, place: Place): void {
  const own = place.in("accessLogFormat");
  if (mesh.accessLogEncoding !== Encoding.JSON) checkText(mesh.accessLogFormat, own);
  else checkFields(parsed(mesh.accessLogFormat), own);
  for (const [index, { provider }] of mesh.extensionProviders.entries()) {
    const at = place.in("extensionProviders", index, provider.case ?? "", "logFormat");
    if (provider.case === "envoyOtelAls") {
      checkText(provider.value.logFormat?.text ?? "", at.in("text"));
      checkFields(provider.value.logFormat?.labels ?? {}, at.in("labels"));
    } else if (provider.case === "envoyFileAccessLog") {
      const format = provider.value.logFormat?.logFormat;
      if (format?.case === "text") checkText(format.value, at.in("text"));
      if (format?.case === "labels") checkFields(format.value, at.in("labels"));
    }
  }
}

function checkText(text: string, place: Place): void {
  place.check("field.ineffective", logFormatFault(text));
}

function checkFields(json: JsonValue, place: Place): void {
  if (typeof json === "string") checkText(json, place);
  else if (typeof json === "object" && json !== null)
    for (const [key, value] of Array.isArray(json) ? json.entries() : Object.entries(json)) checkFields(value, place.in(key));
}

function parsed(text: string): JsonObject {
  try {
    return JSON.parse(text || "{}") as JsonObject;
  } catch {
    return {};
  }
}
