import type { Registry } from "@bufbuild/protobuf";
import type { EnvoyFilter } from "../../../gen/istio/networking/v1alpha3/envoy_filter_pb.js";
import { scriptFaults } from "../../checks/lua/configs.ts";
import type { Place } from "../../checks/place.ts";
import { readMessage } from "../../parse/read-message.ts";
import type { AnyReader } from "../../parse/reading.ts";
import { PATCHED } from "./check-patch-value.ts";

/**
 * Looks into the typed configurations of patches, which reading an EnvoyFilter leaves alone: it needs the descriptors of all of Envoy's extensions, and
 * those are loaded only where somebody asks. Types and fields we have no descriptor for may be newer than we are, so nothing is said of them.
 */
export function checkTypedConfigs(filter: EnvoyFilter, registry: Registry, place: Place): void {
  for (const [index, { applyTo, patch }] of filter.configPatches.entries()) {
    const schema = PATCHED[applyTo];
    if (schema === undefined || patch?.value === undefined) continue;
    const at = place.in("configPatches", index, "patch", "value");
    const anyContent: AnyReader = (json, reading) => {
      const type = String(json["@type"]);
      const known = registry.getMessage(type.slice(type.lastIndexOf("/") + 1));
      if (known === undefined) return undefined;
      const { "@type": _type, ...content } = json;
      const message = readMessage(known, hasFormOfItsOwn(known.typeName) ? content.value : content, {
        report: (code, path, message) => at.in(...path).fault(code, message),
        path: reading.path,
        unknownField: "ignore",
        anyContent,
      });
      for (const { path, reason } of scriptFaults(message)) at.in(...reading.path, ...path).fault("field.invalid", reason);
      return undefined;
    };
    readMessage(schema, patch.value, { report: () => {}, path: [], unknownField: "ignore", anyContent });
  }
}

/** Messages with a JSON form of their own stand under `value` in an `Any`. */
const hasFormOfItsOwn = (typeName: string): boolean => typeName.startsWith("google.protobuf.") && typeName !== "google.protobuf.Empty";
