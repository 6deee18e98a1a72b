import { MeshConfig_ExtensionProvider_ServiceAttributeEnrichment } from "../../gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import type { TemplateInput } from "../template-input.ts";

const PREFIX = "resource.opentelemetry.io/";

/** Attributes of the service by OpenTelemetry's conventions for Kubernetes, where a tracing provider of the mesh asks for them. */
export function otelAttributes({ mesh, pod, namespace }: TemplateInput): readonly string[] {
  const asked = mesh.extensionProviders.some(
    ({ provider }) =>
      provider.case === "opentelemetry" &&
      provider.value.serviceAttributeEnrichment === MeshConfig_ExtensionProvider_ServiceAttributeEnrichment.OTEL_SEMANTIC_CONVENTIONS,
  );
  if (!asked) return [];
  const { annotations = {}, labels = {} } = pod.metadata;
  const containers = pod.spec.containers ?? [];
  const [first] = containers;
  const image = containers.length === 1 ? versionOfImage(first?.image ?? "") : "";
  const attributes = {
    "service.namespace": annotations[`${PREFIX}service.namespace`] || namespace,
    "service.version": annotations[`${PREFIX}service.version`] || labels["app.kubernetes.io/version"] || image,
    "service.instance.id":
      annotations[`${PREFIX}service.instance.id`] || (first === undefined ? "" : `${namespace}.$(POD_NAME).${first.name}`),
  };
  const pairs = Object.entries(attributes).filter(([, value]) => value !== "");
  return pairs.length === 0 ? [] : [pairs.map(([name, value]) => `${name}=${value}`).join(",")];
}

/** Tag and digest of `[registry[:port]/]name[:tag][@digest]`. */
function versionOfImage(image: string): string {
  const [name = "", digest = ""] = image.split("@");
  const colon = name.lastIndexOf(":");
  const tag = colon > name.lastIndexOf("/") ? name.slice(colon + 1) : "";
  return [tag, digest].filter((part) => part !== "").join("@");
}
