import { create } from "@bufbuild/protobuf";
import type { MeshConfig } from "../gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import { ProxyConfigSchema } from "../gen/istio/mesh/v1alpha1/proxy_config_pb.js";
import { encoded } from "../wire/encode.ts";
import type { ResourceSet } from "../wire/encoded.ts";
import { PROXY_CONFIG_TYPE } from "../wire/type-urls.ts";
import type { ResourceProvider } from "../xds/provider.ts";

export interface AnchorSources {
  /** Roots of the CA, in PEM. */
  roots(): string;
  mesh(): Pick<MeshConfig, "caCertificates">;
}

const NAME = "trust-anchors";

/**
 * The roots that workloads are to trust, for their agents: those of the CA and `caCertificates` of mesh.yaml. Agents are told of a new root when it is
 * put beside the old one, and need not wait for their next certificate; so both are known everywhere before the new one signs.
 */
export function trustAnchorProvider(sources: AnchorSources): ResourceProvider {
  let last: { readonly pems: string; readonly set: ResourceSet } | undefined;
  const offered = (): ResourceSet => {
    const pems = [
      sources.roots(),
      ...sources.mesh().caCertificates.flatMap(({ certificateData: data }) => (data.case === "pem" ? [data.value] : [])),
    ];
    const caCertificatesPem = pems.filter((pem) => pem !== "");
    const key = caCertificatesPem.join("\n");
    if (last?.pems !== key) {
      const resource = encoded(
        { typeUrl: PROXY_CONFIG_TYPE, name: NAME },
        ProxyConfigSchema,
        create(ProxyConfigSchema, { caCertificatesPem }),
      );
      last = { pems: key, set: { resources: new Map([[NAME, resource]]), failed: [] } };
    }
    return last.set;
  };
  return { typeUrl: PROXY_CONFIG_TYPE, asksAnew: true, *prepare() {}, offered, provenance: () => [] };
}
