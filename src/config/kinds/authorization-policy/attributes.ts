import type { Operation, Source } from "../../../gen/istio/security/v1beta1/authorization_policy_pb.js";

/** Lists of a source or operation that only HTTP has, and those that every connection has. */
export const HTTP_SOURCE = ["requestPrincipals", "notRequestPrincipals"] as const satisfies readonly (keyof Source)[];
export const TCP_SOURCE = [
  "principals",
  "notPrincipals",
  "namespaces",
  "notNamespaces",
  "serviceAccounts",
  "notServiceAccounts",
  "ipBlocks",
  "notIpBlocks",
  "remoteIpBlocks",
  "notRemoteIpBlocks",
  "trustDomains",
  "notTrustDomains",
] as const satisfies readonly (keyof Source)[];
export const HTTP_OPERATION = [
  "hosts",
  "notHosts",
  "methods",
  "notMethods",
  "paths",
  "notPaths",
] as const satisfies readonly (keyof Operation)[];
export const TCP_OPERATION = ["ports", "notPorts"] as const satisfies readonly (keyof Operation)[];
