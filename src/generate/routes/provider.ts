import type { Query } from "../../engine/index.ts";
import { assembleRouteTable, encodeDomains } from "../../envoy/route/route-table.ts";
import type { ProxyView } from "../../model/proxy.ts";
import { encodedPieces, sameEncoded } from "../../wire/encode.ts";
import type { Encoded, ResourceSet } from "../../wire/encoded.ts";
import { CLUSTER_TYPE, ROUTE_TYPE } from "../../wire/type-urls.ts";
import type { NameSet, ResourceProvider } from "../../xds/provider.ts";
import { type GatewayQuery, type GenerateContext, type ScopeKey, scopeId } from "../context.ts";
import { gatewayQueryOf } from "../lookups/merged-gateway.ts";
import { createCollector, objectsBehind, sameResourceSet } from "../resource-set.ts";
import { type GatewayTableKey, gatewayHosts } from "./gateway-table.ts";
import { defineHostBody } from "./hosts.ts";
import { definePlainHosts } from "./plain-hosts.ts";
import { defineRouteHeaders, type RouteHeaders, routeHeadersId } from "./route-headers.ts";
import { defineRuledHosts } from "./ruled-hosts.ts";
import { type SidecarTableKey, sidecarHosts, type TableHosts, type TableParts } from "./sidecar-table.ts";

/** What decides which tables a proxy has, whatever their names. */
type TableOwner =
  | { readonly kind: "sidecar"; readonly table: Omit<SidecarTableKey, "name"> }
  | { readonly kind: "router"; readonly query: GatewayQuery; readonly headers: RouteHeaders };

interface TableKey {
  readonly owner: TableOwner;
  readonly name: string;
}

/** Route tables, asked for by name: listeners name the tables they use. */
export function createRouteProvider(ctx: GenerateContext): ResourceProvider {
  const table = defineTable(ctx);
  const ownerOf = defineOwner(ctx);
  const set = ctx.engine.query<{ readonly owner: TableOwner; readonly names: NameSet }, ResourceSet>({
    name: "routeTables",
    id: ({ owner, names }) => `${names.id}|${ownerId(owner)}`,
    same: sameResourceSet,
    compute: ({ owner, names }) => {
      const collector = createCollector();
      for (const name of names.names) {
        const result = table.try({ owner, name });
        if (!result.ok) collector.fail(name, result.error.message);
        else if (result.value !== undefined) collector.add(result.value);
      }
      return collector.set;
    },
  });
  return {
    typeUrl: ROUTE_TYPE,
    sendAfter: [CLUSTER_TYPE],
    *prepare(view, { names }) {
      const owner = ownerOf(view);
      for (const name of names.names) {
        table.try({ owner, name });
        yield;
      }
    },
    offered: (view, { names }) => set({ owner: ownerOf(view), names }),
    provenance: (view, name) => objectsBehind(ctx.engine, table, { owner: ownerOf(view), name }),
  };
}

function defineTable(ctx: GenerateContext): Query<TableKey, Encoded | undefined> {
  const body = defineHostBody(ctx);
  const parts: TableParts = { ctx, body, plainHosts: definePlainHosts(ctx, body), ruledHost: defineRuledHosts(ctx, body) };
  return ctx.engine.query<TableKey, Encoded | undefined>({
    name: "routeTable",
    id: ({ owner, name }) => `${name}|${ownerId(owner)}`,
    same: (a, b) => a === b || (a !== undefined && b !== undefined && sameEncoded(a, b)),
    compute: ({ owner, name }) => {
      const made = owner.kind === "sidecar" ? sidecarHosts(parts, { ...owner.table, name }) : routerHosts(parts, { ...owner, name });
      return made === undefined ? undefined : encodedPieces(ROUTE_TYPE, name, assembleRouteTable({ name, ...made }));
    },
  });
}

function routerHosts({ ctx, body }: TableParts, key: GatewayTableKey): TableHosts | undefined {
  const hosts = gatewayHosts(ctx, key)?.map(({ input, domains }) => ({ body: body(input), domains: encodeDomains(domains) }));
  return hosts === undefined ? undefined : { hosts, ignorePort: true };
}

function ownerId(owner: TableOwner): string {
  if (owner.kind === "router") return `router|${JSON.stringify(owner.query)}${routeHeadersId(owner.headers)}`;
  const { scope, dnsDomain, dnsCapture, labels, headers } = owner.table;
  const who = labels === undefined ? "" : JSON.stringify(labels);
  return `sidecar|${scopeId(scope)}|${dnsDomain}|${dnsCapture}|${who}${routeHeadersId(headers)}`;
}

/** A workload's labels split tables only where some rule in its scope asks for them. */
function defineOwner(ctx: GenerateContext): (view: ProxyView) => TableOwner {
  const ruleAsks = ctx.engine.query<string, boolean>({
    name: "virtualServiceAsksForLabels",
    compute: (key) =>
      ctx.lookups
        .virtualService(key)
        ?.spec.http.some((rule) => rule.match.some(({ sourceLabels }) => Object.keys(sourceLabels).length > 0)) === true,
  });
  const asksForLabels = ctx.engine.query<ScopeKey, boolean>({
    name: "routesAskForLabels",
    id: scopeId,
    compute: (key) =>
      ctx.lookups.hasSelectiveDestinationRules(key.namespace) ||
      ctx.lookups.scope(key).egress.some(({ virtualServices }) => virtualServices.some((vs) => ruleAsks(vs))),
  });
  const headersOf = defineRouteHeaders(ctx);
  return (view) => {
    const headers = headersOf(view);
    if (view.type === "router") return { kind: "router", query: gatewayQueryOf(ctx, view), headers };
    const scope: ScopeKey = { namespace: view.namespace, sidecar: view.sidecar };
    const labels = asksForLabels(scope) ? view.labels : undefined;
    return { kind: "sidecar", table: { scope, dnsDomain: view.dnsDomain, dnsCapture: view.dnsCapture, labels, headers } };
  };
}
