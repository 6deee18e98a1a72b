import { toJson } from "@bufbuild/protobuf";
import { MeshConfigSchema } from "../../gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import { ProxyConfigSchema } from "../../gen/istio/mesh/v1alpha1/proxy_config_pb.js";
import type { Fields } from "../pod.ts";
import type { TemplateInput } from "../template-input.ts";
import { isLocalhostInbound } from "../templates/proxy-environment.ts";

/** What a template of a user sees, under the names that Istio gives it. */
export const templateData = (input: TemplateInput): Fields => ({
  TypeMeta: { APIVersion: input.owner.apiVersion, Kind: input.owner.kind },
  DeploymentMeta: { Name: input.owner.name, Namespace: input.owner.namespace },
  ObjectMeta: { labels: {}, annotations: {}, ...input.pod.metadata },
  Spec: input.pod.spec,
  ProxyConfig: toJson(ProxyConfigSchema, input.proxyConfig, { alwaysEmitImplicit: true }),
  MeshConfig: toJson(MeshConfigSchema, input.mesh, { alwaysEmitImplicit: true }),
  Values: input.values,
  Revision: input.revision,
  NativeSidecars: input.native,
  ProxyImage: input.images.proxy,
  ProxyInitImage: input.images.init,
  ProxyUID: input.user.uid,
  ProxyGID: input.user.gid,
  InboundTrafficPolicyMode: isLocalhostInbound(input) ? "localhost" : "passthrough",
  CompliancePolicy: input.compliancePolicy,
});
