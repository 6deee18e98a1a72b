import type {
  MeshConfig,
  MeshConfig_ExtensionProvider,
  MeshConfig_ExtensionProvider_HttpHeader,
} from "../../gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import type { Env } from "../../settings/read-settings.ts";

/**
 * Headers of providers may leave their value to the environment of the control plane (`envName`), so that a token need not stand in a file. The
 * value is put in where MeshConfig is read, since from then on it is part of the mesh like any other: a control plane that is started again with another
 * one sends another tracer. One that is not set is empty, as in Istio.
 */
export function fillHeaderValues(mesh: MeshConfig, env: Env): void {
  for (const header of mesh.extensionProviders.flatMap(headersOf)) {
    if (header.headerValue.case === "envName") header.headerValue = { case: "value", value: env[header.headerValue.value] ?? "" };
  }
}

function headersOf({ provider }: MeshConfig_ExtensionProvider): readonly MeshConfig_ExtensionProvider_HttpHeader[] {
  if (provider.case === "zipkin") return provider.value.headers;
  if (provider.case !== "opentelemetry") return [];
  const { http, grpc, sampling } = provider.value;
  const sampler = sampling.case === "dynatraceSampler" ? sampling.value.httpService?.http : undefined;
  return [...(http?.headers ?? []), ...(grpc?.initialMetadata ?? []), ...(sampler?.headers ?? [])];
}
