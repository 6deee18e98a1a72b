import { create, fromBinary } from "@bufbuild/protobuf";
import {
  type Filter,
  type FilterChain,
  FilterChainSchema,
  FilterSchema,
} from "../../gen/envoy/config/listener/v3/listener_components_pb.js";
import type { Listener } from "../../gen/envoy/config/listener/v3/listener_pb.js";
import {
  type HttpConnectionManager,
  HttpConnectionManagerSchema,
  type HttpFilter,
  HttpFilterSchema,
} from "../../gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.js";
import { anyOf } from "../../wire/encode.ts";
import { matchesChain } from "./match-listener.ts";
import { mergeInto } from "./merge.ts";
import { typeNameOf } from "./merge-any.ts";
import { mergeFilter, mergeSocket } from "./merge-filter.ts";
import { contentFor, listMode, merges, type Patch } from "./patch.ts";
import type { Patching } from "./patch-listener.ts";
import { patchRoutes } from "./patch-routes.ts";
import { place } from "./place.ts";
import { amongStandIns, HTTP_STAND_INS, NETWORK_STAND_INS } from "./stand-ins.ts";
import { endOf, TERMINAL_HTTP_FILTERS, TERMINAL_NETWORK_FILTERS } from "./terminal-filters.ts";

/** Applies patches to a filter chain and what is in it. False when one removes it. */
export function patchFilterChain(chain: FilterChain, listener: Listener, patching: Patching): boolean {
  const { trace } = patching;
  patchOwnRoutes(chain, patching);
  for (const patch of patching.patches) {
    if (patch.applyTo !== "FILTER_CHAIN" || patch.operation === "ADD" || !matchesChain(patch, listener, chain)) continue;
    trace.match(patch);
    if (patch.operation === "REMOVE") {
      trace.apply(patch, () => true);
      return false;
    }
    if (merges(patch)) trace.apply(patch, () => mergeChain(chain, patch, patching));
  }
  patchNetworkFilters(chain, listener, patching);
  return true;
}

/** Where the chain has a transport socket of the name that the patch gives, only the socket is merged, as in Istio. */
function mergeChain(chain: FilterChain, patch: Patch, { registry }: Patching): boolean {
  const value = contentFor(patch, FilterChainSchema);
  const socketOnly = value.transportSocket !== undefined && mergeSocket(chain.transportSocket, value.transportSocket, registry);
  if (!socketOnly) mergeInto({ schema: FilterChainSchema, lists: listMode(patch) }, chain, value);
  return true;
}

/** Placing first, merging then, and the HTTP filters of each connection manager last: the order in which Istio applies them. */
function patchNetworkFilters(chain: FilterChain, listener: Listener, patching: Patching): void {
  const { trace, registry } = patching;
  const inChain = patching.patches.filter((patch) => matchesChain(patch, listener, chain));
  const onFilters = inChain.filter(({ applyTo }) => applyTo === "NETWORK_FILTER");
  const list = chain.filters;
  const end = (): number => endOf(list, TERMINAL_NETWORK_FILTERS);
  const named = new Set(onFilters.flatMap((patch) => (merges(patch) ? [] : (patch.listener?.filter ?? []))));
  amongStandIns(NETWORK_STAND_INS, { list, named, listener, end, make: (name) => create(FilterSchema, { name }) }, () => {
    for (const patch of onFilters) {
      if (merges(patch)) continue;
      const specific = patch.listener?.filter !== undefined;
      if (!specific || list.some((filter) => namesFilter(patch, filter))) trace.match(patch);
      const placing = { list, matches: (filter: Filter) => namesFilter(patch, filter), specific, end: end() };
      trace.apply(patch, () => place(patch.operation, { ...placing, value: () => contentFor(patch, FilterSchema) }));
    }
  });
  for (const filter of chain.filters) {
    for (const patch of onFilters) {
      if (!merges(patch) || !namesFilter(patch, filter)) continue;
      trace.match(patch);
      trace.apply(patch, () => mergeFilter({ target: filter, patch: contentFor(patch, FilterSchema), registry }));
    }
    const onHttp = inChain.filter((patch) => patch.applyTo === "HTTP_FILTER" && namesFilter(patch, filter));
    if (onHttp.length > 0) withManager(filter, (manager) => patchHttpFilters({ manager, listener }, onHttp, patching));
  }
}

const namesFilter = ({ listener }: Patch, { name }: Filter): boolean => listener?.filter === undefined || listener.filter === name;

interface ManagerOf {
  readonly manager: HttpConnectionManager;
  readonly listener: Listener;
}

function patchHttpFilters({ manager, listener }: ManagerOf, patches: readonly Patch[], { trace, registry }: Patching): void {
  const named = (patch: Patch, name: string): boolean => patch.listener?.subFilter === undefined || patch.listener.subFilter === name;
  const list = manager.httpFilters;
  const end = (): number => endOf(list, TERMINAL_HTTP_FILTERS);
  const neighbours = new Set(patches.flatMap((patch) => (merges(patch) ? [] : (patch.listener?.subFilter ?? []))));
  const make = (name: string): HttpFilter => create(HttpFilterSchema, { name });
  amongStandIns(HTTP_STAND_INS, { list, named: neighbours, listener, end, make }, () => {
    for (const patch of patches) {
      if (merges(patch)) continue;
      const specific = patch.listener?.subFilter !== undefined;
      if (!specific || list.some(({ name }) => named(patch, name))) trace.match(patch);
      const placing = { list, matches: ({ name }: { readonly name: string }) => named(patch, name), specific };
      trace.apply(patch, () => place(patch.operation, { ...placing, value: () => contentFor(patch, HttpFilterSchema), end: end() }));
    }
  });
  for (const filter of list) {
    for (const patch of patches) {
      if (!merges(patch) || !named(patch, filter.name)) continue;
      trace.match(patch);
      trace.apply(patch, () => mergeFilter({ target: filter, patch: contentFor(patch, HttpFilterSchema), registry }));
    }
  }
}

const ROUTE_PARTS: ReadonlySet<string> = new Set(["ROUTE_CONFIGURATION", "VIRTUAL_HOST", "HTTP_ROUTE"]);

/** Inbound connection managers carry their routes themselves. */
function patchOwnRoutes(chain: FilterChain, patching: Patching): void {
  const patches = patching.patches.filter(({ applyTo }) => ROUTE_PARTS.has(applyTo));
  if (patches.length === 0) return;
  for (const filter of chain.filters) {
    withManager(filter, ({ routeSpecifier }) => {
      if (routeSpecifier.case === "routeConfig") patchRoutes(routeSpecifier.value, { ...patching, patches, ports: [] });
    });
  }
}

/** Lets the connection manager in a filter be modified, where the filter is one. */
function withManager(filter: Filter, change: (manager: HttpConnectionManager) => void): void {
  const config = filter.configType;
  if (config.case !== "typedConfig" || typeNameOf(config.value) !== HttpConnectionManagerSchema.typeName) return;
  const manager = fromBinary(HttpConnectionManagerSchema, config.value.value);
  change(manager);
  filter.configType = { case: "typedConfig", value: anyOf(HttpConnectionManagerSchema, manager) };
}
