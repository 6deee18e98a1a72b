import {
  assembleRouteTable,
  encodeDomains,
  noVirtualHost,
  splitVirtualHostName,
  virtualHostResources,
  withDistinctDomains,
} from "../../envoy/route/route-table.ts";
import type { ProxyView } from "../../model/proxy.ts";
import { encodedPieces, sameEncoded } from "../../wire/encode.ts";
import type { Encoded, ResourceSet } from "../../wire/encoded.ts";
import { stacked } from "../../wire/stacked-resources.ts";
import { CLUSTER_TYPE, ROUTE_TYPE, VIRTUAL_HOST_TYPE } from "../../wire/type-urls.ts";
import type { NameSet, ResourceProvider } from "../../xds/provider.ts";
import { type GatewayQuery, type GenerateContext, type ScopeKey, scopeId } from "../context.ts";
import { keyListId } from "../lookups/key-list.ts";
import { gatewayQueryOf } from "../lookups/merged-gateway.ts";
import { definePrepareOnce } from "../prepare-once.ts";
import { createCollector, objectsBehind, sameResourceSet, sameResources } from "../resource-set.ts";
import { defineCommonHosts } from "./common-hosts.ts";
import { addressingId } from "./domains.ts";
import { type GatewayTableKey, gatewayHosts } from "./gateway-table.ts";
import { defineHostBody } from "./hosts.ts";
import { definePlainHosts, defineRulesIn } from "./plain-hosts.ts";
import { type HostGroup, numberOf } from "./planned-host.ts";
import { defineRouteHeaders, type RouteHeaders, routeHeadersId } from "./route-headers.ts";
import { defineRuledHosts } from "./ruled-hosts.ts";
import { defineSidecarPlan, isSharedTable } from "./sidecar-plan.ts";
import {
  behindHost,
  hostMaker,
  inlineHosts,
  type SidecarTableKey,
  sidecarHosts,
  type TableHosts,
  type TableParts,
  tableSteps,
} from "./sidecar-table.ts";

/** What decides which tables a proxy has, whatever their names. */
type TableOwner =
  | { readonly kind: "sidecar"; readonly table: Omit<SidecarTableKey, "name"> }
  | { readonly kind: "router"; readonly query: GatewayQuery; readonly headers: RouteHeaders };

interface TableKey {
  readonly owner: TableOwner;
  readonly name: string;
}

/** Tables that a proxy asks for. Those that many hosts share are divided where it can be sent their hosts one by one. */
interface TablesKey {
  readonly owner: TableOwner;
  readonly names: NameSet;
  readonly divided: boolean;
}

/** A group of hosts of a table. */
interface HostRunKey {
  readonly table: SidecarTableKey;
  readonly owner: string;
  readonly group: HostGroup;
}

/**
 * Route tables, asked for by name (listeners name the tables they use), and their virtual hosts for proxies that say they take them one by one
 * (node metadata `VHDS`): then a change of one route is one small resource. Which tables that are goes by their kind, not by how many hosts they
 * have at the moment: Envoy refuses a domain that is in a table and in a discovered host, so on the way from a whole table to a divided one calls
 * would meet neither (measured on 1.40). Gateways have whole tables: they are few, and the host for everything comes and goes with their rules.
 */
export function createRouteProviders(ctx: GenerateContext): { readonly routes: ResourceProvider; readonly virtualHosts: ResourceProvider } {
  const queries = defineTables(ctx);
  const ownerOf = defineOwner(ctx);
  const keyOf = (view: ProxyView, names: NameSet): TablesKey => ({ owner: ownerOf(view), names, divided: takesHosts(view) });
  return { routes: routeProvider(ctx, queries, keyOf), virtualHosts: virtualHostProvider(ctx, queries, keyOf) };
}

type Tables = ReturnType<typeof defineTables>;
type KeyOf = (view: ProxyView, names: NameSet) => TablesKey;

const takesHosts = ({ type, metadata }: ProxyView): boolean => type === "sidecar" && metadata.vhds;

function routeProvider(ctx: GenerateContext, { parts, table, divided, tableOf, tableSet }: Tables, keyOf: KeyOf): ResourceProvider {
  return {
    typeUrl: ROUTE_TYPE,
    sendAfter: [CLUSTER_TYPE],
    *prepare(view, { names }) {
      const key = keyOf(view, names);
      for (const name of names.names) {
        if (key.owner.kind === "sidecar") yield* tableSteps(parts, { ...key.owner.table, name });
        tableOf(key, name);
        yield;
      }
    },
    isLastResult: () => true,
    offered: (view, { names }) => tableSet(keyOf(view, names)),
    provenance: (view, name) => {
      const { owner, divided: divides } = keyOf(view, NO_NAMES);
      const key = { owner, name };
      return divides && isSharedTable(name) ? objectsBehind(ctx.engine, divided, key) : objectsBehind(ctx.engine, table, key);
    },
  };
}

/** What is wanted are the tables that a proxy has asked for; all their hosts are offered, for Envoy asks for none by name. */
function virtualHostProvider({ engine }: GenerateContext, { parts, run, runs, hostSet }: Tables, keyOf: KeyOf): ResourceProvider {
  const prepareOnce = definePrepareOnce(engine);
  return {
    typeUrl: VIRTUAL_HOST_TYPE,
    partOf: ROUTE_TYPE,
    askedBy: takesHosts,
    sendAfter: [CLUSTER_TYPE, ROUTE_TYPE],
    prepare(view, { names }) {
      if (!takesHosts(view)) return [];
      const shared = runs(keyOf(view, names));
      return prepareOnce(shared, function* () {
        for (const one of shared) {
          run.try(one);
          yield;
        }
      });
    },
    isLastResult: () => true,
    offered: (view, { names, wildcard }) => (wildcard && takesHosts(view) ? hostSet(keyOf(view, names)) : EMPTY_SET),
    provenance(view, name) {
      const { table, host } = splitVirtualHostName(name);
      const { owner } = keyOf(view, NO_NAMES);
      return owner.kind === "sidecar" ? behindHost(parts, { ...owner.table, name: table }, host) : [];
    },
  };
}

const NO_NAMES: NameSet = { id: 0, names: new Set() };
const EMPTY_SET: ResourceSet = { resources: new Map(), failed: [] };

function defineTables(ctx: GenerateContext) {
  const { engine } = ctx;
  const parts = tableParts(ctx);
  const tableId = ({ owner, name }: TableKey): string => `${name}|${ownerId(owner)}`;
  const tablesId = ({ owner, names, divided: divides }: TablesKey): string => `${names.id}|${divides}|${ownerId(owner)}`;
  const table = engine.query<TableKey, Encoded | undefined>({
    name: "routeTable",
    id: tableId,
    same: sameIfMade,
    compute: ({ owner, name }) => {
      const made = owner.kind === "sidecar" ? sidecarHosts(parts, { ...owner.table, name }) : routerHosts(parts, { ...owner, name });
      return made && encodedPieces(ROUTE_TYPE, name, assembleRouteTable({ name, divided: false, ...made }));
    },
  });
  const divided = engine.query<TableKey, Encoded | undefined>({
    name: "dividedRouteTable",
    id: tableId,
    same: sameIfMade,
    compute: ({ owner, name }) => {
      if (owner.kind !== "sidecar") return undefined;
      const key = { ...owner.table, name };
      const { ignorePort } = parts.plan(key);
      return encodedPieces(ROUTE_TYPE, name, assembleRouteTable({ name, divided: true, groups: [inlineHosts(parts, key)], ignorePort }));
    },
  });
  const tableOf = ({ owner, divided: divides }: TablesKey, name: string) =>
    (divides && isSharedTable(name) ? divided : table).try({ owner, name });
  const tableSet = engine.query<TablesKey, ResourceSet>({
    name: "routeTables",
    id: tablesId,
    same: sameResourceSet,
    compute: (key) => {
      const collector = createCollector();
      for (const name of key.names.names) {
        const result = tableOf(key, name);
        if (!result.ok) collector.fail(name, result.error.message);
        else if (result.value !== undefined) collector.add(result.value);
      }
      return collector.set;
    },
  });
  return { parts, table, divided, tableOf, tableSet, ...defineHostSets(ctx, parts, tablesId) };
}

function tableParts(ctx: GenerateContext): TableParts {
  const body = defineHostBody(ctx);
  const plainHosts = definePlainHosts(ctx, body);
  const plan = defineSidecarPlan(ctx, plainHosts.at);
  const ruledHosts = defineRuledHosts(ctx, body);
  const rulesIn = defineRulesIn(ctx);
  return { ctx, body, plan, plainHosts, ruledHosts, commonHosts: defineCommonHosts({ ctx, ruledHosts, rulesIn }), rulesIn };
}

function defineHostSets({ engine }: GenerateContext, parts: TableParts, id: (key: TablesKey) => string) {
  const run = engine.query<HostRunKey, ResourceSet["resources"]>({
    name: "virtualHostRun",
    id: ({ table, owner, group }) => `${numberOf(group)}|${table.name}|${owner}`,
    same: sameResources,
    compute: ({ table, group }) => virtualHostResources(table.name, hostMaker(parts, table)(group)),
  });
  const runs = engine.query<TablesKey, readonly HostRunKey[]>({
    name: "virtualHostRuns",
    id,
    compute: ({ owner, names }) => {
      if (owner.kind !== "sidecar") return [];
      return [...names.names].filter(isSharedTable).flatMap((name) => {
        const table = { ...owner.table, name };
        return parts.plan(table).groups.map((group) => ({ table, owner: ownerId(owner), group }));
      });
    },
  });
  const hostSet = engine.query<TablesKey, ResourceSet>({
    name: "virtualHosts",
    id,
    same: sameResourceSet,
    compute: (key) => {
      const { add, fail, set } = createCollector();
      const hosts: ResourceSet["resources"][] = [];
      const tables = new Set(key.owner.kind === "sidecar" ? [...key.names.names].filter(isSharedTable) : []);
      for (const one of runs(key)) {
        const made = run.try(one);
        if (made.ok) hosts.push(made.value);
        else for (const { name } of one.group) fail(`${one.table.name}/${name}`, made.error.message);
        if (!made.ok || made.value.size > 0) tables.delete(one.table.name);
      }
      for (const name of tables) add(noVirtualHost(name));
      return { resources: stacked([...hosts, set.resources]), failed: set.failed };
    },
  });
  return { run, runs, hostSet };
}

const sameIfMade = (a: Encoded | undefined, b: Encoded | undefined): boolean =>
  a === b || (a !== undefined && b !== undefined && sameEncoded(a, b));

function routerHosts({ ctx, body }: TableParts, key: GatewayTableKey): TableHosts | undefined {
  const hosts = gatewayHosts(ctx, key)?.map(({ input, domains }) => ({
    name: input.name,
    body: body(input),
    domains: encodeDomains(domains),
  }));
  return hosts && { groups: [withDistinctDomains(hosts)], ignorePort: true };
}

function ownerId(owner: TableOwner): string {
  if (owner.kind === "router") return `router|${JSON.stringify(owner.query)}${routeHeadersId(owner.headers)}`;
  const { scope, dnsDomain, labels, headers, ...addressing } = owner.table;
  const who = labels === undefined ? "" : JSON.stringify(labels);
  return `sidecar|${scopeId(scope)}|${dnsDomain}|${addressingId(addressing)}|${who}${routeHeadersId(headers)}`;
}

/** A workload's labels split tables only where some rule in its scope asks for them. */
function defineOwner(ctx: GenerateContext): (view: ProxyView) => TableOwner {
  const ruleAsks = ctx.engine.query<string, boolean>({
    name: "virtualServiceAsksForLabels",
    eager: true,
    compute: (key) =>
      ctx.lookups
        .virtualService(key)
        ?.spec.http.some((rule) => rule.match.some(({ sourceLabels }) => Object.keys(sourceLabels).length > 0)) === true,
  });
  const someAsk = ctx.engine.query<readonly string[], boolean>({
    name: "virtualServicesAskForLabels",
    id: keyListId,
    compute: (keys) => keys.some((vs) => ruleAsks(vs)),
  });
  const asksForLabels = ctx.engine.query<ScopeKey, boolean>({
    name: "routesAskForLabels",
    id: scopeId,
    compute: (key) =>
      ctx.lookups.hasSelectiveDestinationRules(key.namespace) ||
      ctx.lookups.scope(key).egress.some(({ virtualServices }) => someAsk(virtualServices)),
  });
  const headersOf = defineRouteHeaders(ctx);
  return (view) => {
    const headers = headersOf(view);
    if (view.type === "router") return { kind: "router", query: gatewayQueryOf(ctx, view), headers };
    const scope: ScopeKey = { namespace: view.namespace, sidecar: view.sidecar };
    const labels = asksForLabels(scope) ? view.labels : undefined;
    const { dnsDomain, dnsCapture, remoteCluster } = view;
    return { kind: "sidecar", table: { scope, dnsDomain, dnsCapture, remoteCluster, labels, headers } };
  };
}
