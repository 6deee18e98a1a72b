import { bodyOfResource } from "../wire/delta-frames.ts";
import { eachField } from "../wire/field-reader.ts";
import { PROXY_CONFIG_TYPE } from "../wire/type-urls.ts";
import type { AgentPart } from "./parts.ts";

/** `ca_certificates_pem` of `istio.mesh.v1alpha1.ProxyConfig`. */
const CA_CERTIFICATES_FIELD = 34;

/** Roots that the control plane adds to those of the CA (an old and a new one while they change, those of other meshes) reach Envoy as they come. */
export const trustAnchors: AgentPart = ({ subscriptions, identity }) => {
  subscriptions.push({
    typeUrl: PROXY_CONFIG_TYPE,
    names: [],
    taken: ({ resources }) => identity.setAnchors(resources.flatMap(({ bytes }) => readAnchors(bodyOfResource(bytes)))),
  });
};

function readAnchors(proxyConfig: Uint8Array): readonly string[] {
  const pems: string[] = [];
  eachField(proxyConfig, (field, reader) => {
    if (field !== CA_CERTIFICATES_FIELD) return false;
    pems.push(reader.string());
    return true;
  });
  return pems;
}
