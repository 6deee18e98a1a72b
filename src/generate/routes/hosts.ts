import { contentHash } from "../../base/hash.ts";
import type { Query } from "../../engine/index.ts";
import { ANY_NAME_CLUSTER, outboundClusterName, PASSTHROUGH_CLUSTER } from "../../envoy/cluster/index.ts";
import type { ActionInput, HashPolicyInput, RouteInput, VirtualHostInput } from "../../envoy/route/route-input.ts";
import { NO_HEADER_CHANGES } from "../../envoy/route/route-input.ts";
import { buildVirtualHost } from "../../envoy/route/virtual-host.ts";
import { VirtualHostSchema } from "../../gen/envoy/config/route/v3/route_components_pb.js";
import type { HTTPRetry } from "../../gen/istio/networking/v1alpha3/virtual_service_pb.js";
import { refOf, type ServiceRef } from "../../model/service.ts";
import { type Session, sessionOf } from "../../model/session.ts";
import { encode } from "../../wire/encode.ts";
import type { GenerateContext, Scope } from "../context.ts";
import type { RouteHeaders } from "./route-headers.ts";
import { hashPolicyOf } from "./translate/hash-policy.ts";
import { ANY_REQUEST } from "./translate/match.ts";
import { translateRetry } from "./translate/retry.ts";
import type { RuleSite } from "./translate/rule.ts";

/** Encodes virtual hosts. Equal inputs are encoded once, whoever asks: most hosts are the same for every namespace. */
export function defineHostBody(ctx: GenerateContext): Query<VirtualHostInput, Uint8Array> {
  return ctx.engine.query<VirtualHostInput, Uint8Array>({
    name: "virtualHostBody",
    id: (input) => contentHash(JSON.stringify(input)),
    compute: (input) => encode(VirtualHostSchema, buildVirtualHost(input)),
  });
}

/** A client, as far as destinations look different to different clients. */
export interface RouteClient {
  readonly namespace: string;
  /** Only where some rule asks for them; undefined otherwise, so that workloads share their tables. */
  readonly labels: Readonly<Record<string, string>> | undefined;
  readonly headers: RouteHeaders;
}

export interface RouteTarget {
  readonly host: string;
  readonly subset: string;
  readonly port: number;
  /** The service, where it is known already. */
  readonly ref?: ServiceRef;
}

/** The hash policy of a destination that a client can see: by its DestinationRule for it, or by the service's own wish. */
export function destinationHash(ctx: GenerateContext, client: RouteClient, target: RouteTarget): HashPolicyInput | undefined {
  const ref = target.ref ?? ctx.lookups.visibleService(target.host, client.namespace);
  const service = ref && ctx.registry.service(ref);
  if (service === undefined) return undefined;
  const labels = client.labels !== undefined && ctx.lookups.hasSelectiveDestinationRules(client.namespace) ? client.labels : undefined;
  return hashPolicyOf(
    ctx.lookups.destinationRule({ host: target.host, clientNamespace: client.namespace, serviceNamespace: service.namespace, labels }),
    { service, subset: target.subset, port: target.port },
  );
}

export const meshRetry = (ctx: GenerateContext): HTTPRetry | undefined => ctx.inputs.mesh.get("mesh")?.defaultHttpRetryPolicy;

/** Where rules stand for a listener port; destinations without a port mean `defaultPort`. */
export function siteFor(
  ctx: GenerateContext,
  client: RouteClient,
  place: Pick<RuleSite, "gateway" | "port" | "secure"> & { readonly defaultPort: (host: string) => number },
): RuleSite {
  return {
    ...place,
    namespace: client.namespace,
    labels: client.labels ?? {},
    forwardHost: client.headers.forwardHost,
    defaultTimeoutMs: ctx.settings.defaultRequestTimeoutMs,
    defaultRetry: meshRetry(ctx),
    sessionOf: (host) => sessionOfHost(ctx, ctx.lookups.aliases.targetOf(host) ?? host, client.namespace),
    resolve: ({ host: named, subset, port }) => {
      const host = ctx.lookups.aliases.targetOf(named) ?? named;
      const target = { host, subset, port: port?.number || place.defaultPort(host) };
      return { cluster: outboundClusterName(target), hashPolicy: destinationHash(ctx, client, target) };
    },
  };
}

/** How requests to a host are kept at one endpoint, as a client in a namespace sees it. */
export function sessionOfHost(ctx: GenerateContext, host: string, namespace: string): Session | undefined {
  if (!ctx.settings.sessions.enabled) return undefined;
  const ref = ctx.lookups.visibleService(host, namespace);
  const service = ref && ctx.registry.service(ref);
  return service && sessionOf(service, ctx.settings.sessions);
}

/** A service without rules of its own, as a client sees it: everything goes to its cluster. */
export function plainHost(ctx: GenerateContext, client: RouteClient, target: ServiceRef & { readonly port: number }): VirtualHostInput {
  const { host, port } = target;
  return hashedHost(ctx, target, {
    headers: client.headers,
    hashPolicy: destinationHash(ctx, client, { host, subset: "", port, ref: refOf(target) }),
  });
}

/** The same where it is known already how requests are hashed. */
export function hashedHost(
  ctx: GenerateContext,
  target: ServiceRef & { readonly port: number },
  { headers, hashPolicy }: { readonly headers: RouteHeaders; readonly hashPolicy: HashPolicyInput | undefined },
): VirtualHostInput {
  const action: ActionInput = {
    kind: "route",
    destinations: [
      {
        cluster: outboundClusterName({ port: target.port, subset: "", host: target.host }),
        weight: 0,
        request: NO_HEADER_CHANGES,
        response: NO_HEADER_CHANGES,
        hostRewrite: undefined,
      },
    ],
    timeoutMs: ctx.settings.defaultRequestTimeoutMs,
    retry: translateRetry(undefined, meshRetry(ctx), { hashed: false }),
    rewrite: undefined,
    mirrors: [],
    hashPolicies: hashPolicy === undefined ? [] : [hashPolicy],
  };
  const routes = [{ ...BARE_ROUTE, name: "default", action, operation: `${target.host}:${target.port}/*` }];
  const service = ctx.settings.sessions.enabled ? ctx.registry.service(target) : undefined;
  const session = service && sessionOf(service, ctx.settings.sessions);
  return { ...virtualHost(`${target.host}:${target.port}`, routes, headers), ...(session !== undefined && { session }) };
}

export const virtualHost = (name: string, routes: readonly RouteInput[], headers: RouteHeaders): VirtualHostInput => ({
  name,
  routes,
  requireTls: false,
  includeAttemptCount: headers.attemptCount,
});

/** What becomes of hosts nobody declared: passed on to where the client meant them, sent to the egress proxy, or refused. */
export function unknownHost(scope: Scope, headers: RouteHeaders): VirtualHostInput {
  if (scope.outboundPolicy === "REGISTRY_ONLY") {
    const refused: ActionInput = { kind: "directResponse", status: 502, body: undefined };
    return virtualHost("block_all", [{ ...BARE_ROUTE, name: "block_all", action: refused }], headers);
  }
  const byName = scope.outboundPolicy === "ALLOW_ANY_DYNAMIC_DNS";
  const through = byName ? ANY_NAME_CLUSTER : PASSTHROUGH_CLUSTER;
  const cluster = scope.egressProxy === undefined ? through : outboundClusterName(scope.egressProxy);
  const action: ActionInput = {
    kind: "route",
    destinations: [{ cluster, weight: 0, request: NO_HEADER_CHANGES, response: NO_HEADER_CHANGES, hostRewrite: undefined }],
    timeoutMs: 0,
    retry: undefined,
    rewrite: undefined,
    mirrors: [],
    hashPolicies: [],
    ...(headers.forwardHost && { forwardHost: true }),
  };
  const name = byName ? "allow_any_dynamic_dns" : "allow_any";
  return virtualHost(name, [{ ...BARE_ROUTE, name, action }], headers);
}

export const blackHoleHost = (port: number): VirtualHostInput => ({
  name: `blackhole:${port}`,
  routes: [],
  requireTls: false,
  includeAttemptCount: false,
});

const BARE_ROUTE: Omit<RouteInput, "action"> = {
  name: "",
  match: ANY_REQUEST,
  request: NO_HEADER_CHANGES,
  response: NO_HEADER_CHANGES,
  cors: undefined,
  fault: undefined,
  statPrefix: "",
  operation: "",
  origin: undefined,
};
