import type { KindDef } from "../kind-def.ts";
import { authorizationPolicy } from "./authorization-policy/authorization-policy.ts";
import { configMap } from "./config-map/config-map.ts";
import { destinationRule } from "./destination-rule/destination-rule.ts";
import { endpointSlice } from "./endpoint-slice/endpoint-slice.ts";
import { endpoints } from "./endpoints/endpoints.ts";
import { envoyFilter } from "./envoy-filter/envoy-filter.ts";
import { gateway } from "./gateway/gateway.ts";
import { GATEWAY_API_KINDS } from "./gateway-api/gateway-api.ts";
import { ingress } from "./ingress/ingress.ts";
import { ingressClass } from "./ingress-class/ingress-class.ts";
import { namespace } from "./namespace/namespace.ts";
import { node } from "./node/node.ts";
import { peerAuthentication } from "./peer-authentication/peer-authentication.ts";
import { pod } from "./pod/pod.ts";
import { proxyConfig } from "./proxy-config/proxy-config.ts";
import { requestAuthentication } from "./request-authentication/request-authentication.ts";
import { secret } from "./secret/secret.ts";
import { service } from "./service/service.ts";
import { serviceEntry } from "./service-entry/service-entry.ts";
import { sidecar } from "./sidecar/sidecar.ts";
import { telemetry } from "./telemetry/telemetry.ts";
import { trafficExtension } from "./traffic-extension/traffic-extension.ts";
import { virtualService } from "./virtual-service/virtual-service.ts";
import { wasmPlugin } from "./wasm-plugin/wasm-plugin.ts";
import { workloadEntry } from "./workload-entry/workload-entry.ts";
import { workloadGroup } from "./workload-group/workload-group.ts";

/** Every kind there is. Parsing, validation, CRDs and the command line read this table and nothing else. */
export const KINDS: readonly KindDef[] = [
  virtualService,
  destinationRule,
  gateway,
  serviceEntry,
  workloadEntry,
  workloadGroup,
  sidecar,
  envoyFilter,
  proxyConfig,
  peerAuthentication,
  requestAuthentication,
  authorizationPolicy,
  telemetry,
  wasmPlugin,
  trafficExtension,
  service,
  endpointSlice,
  endpoints,
  pod,
  node,
  namespace,
  secret,
  configMap,
  ingress,
  ingressClass,
  ...GATEWAY_API_KINDS,
] as readonly KindDef[];

const byName = new Map(KINDS.map((def) => [`${def.group}/${def.writtenKind ?? def.kind}`, def]));

/** Finds a kind by group and kind as documents write them. */
export const kindOf = (group: string, kind: string): KindDef | undefined => byName.get(`${group}/${kind}`);

/** Names of the kinds that an API group of Istio's has; none for other groups. */
export const kindNamesOf = (group: string): readonly string[] =>
  KINDS.filter((def) => def.custom !== undefined && def.group === group).map(({ kind }) => kind);
