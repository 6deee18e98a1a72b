import type { Registry } from "@bufbuild/protobuf";
import { FilterChainSchema, ListenerFilterSchema } from "../../gen/envoy/config/listener/v3/listener_components_pb.js";
import { type Listener, ListenerSchema } from "../../gen/envoy/config/listener/v3/listener_pb.js";
import { matchesListener } from "./match-listener.ts";
import { mergeInto } from "./merge.ts";
import { mergeFilter } from "./merge-filter.ts";
import { contentFor, inContext, listMode, merges, type Patch, type PatchContext } from "./patch.ts";
import { patchFilterChain } from "./patch-filter-chain.ts";
import { place } from "./place.ts";
import type { PatchTrace } from "./trace.ts";

/** What patches are applied with. */
export interface Patching {
  readonly context: PatchContext;
  /** In order; those for other kinds of resources are passed over. */
  readonly patches: readonly Patch[];
  readonly registry: Registry;
  readonly trace: PatchTrace;
}

/**
 * Applies patches to a listener, which is modified; undefined when one removes it. First the listener itself, then its listener filters, then
 * its chains with all that is in them, as Istio does. An inbound listener carries its routes itself, so patches on routes are applied here too.
 */
export function patchListener(listener: Listener, patching: Patching): Listener | undefined {
  const { context, trace } = patching;
  const patches = patching.patches.filter((patch) => inContext(patch, context) && matchesListener(patch, listener));
  for (const patch of patches) {
    if (patch.applyTo !== "LISTENER" || patch.operation === "ADD") continue;
    trace.match(patch);
    if (patch.operation === "REMOVE") {
      trace.apply(patch, () => true);
      return undefined;
    }
    if (merges(patch)) trace.apply(patch, () => mergeListener(listener, patch));
  }
  const inside: Patching = { ...patching, patches };
  patchListenerFilters(listener, inside);
  patchFilterChains(listener, inside);
  return listener;
}

function mergeListener(listener: Listener, patch: Patch): boolean {
  mergeInto({ schema: ListenerSchema, lists: listMode(patch) }, listener, contentFor(patch, ListenerSchema));
  return true;
}

function patchListenerFilters(listener: Listener, { patches, trace, registry }: Patching): void {
  for (const patch of patches) {
    if (patch.applyTo !== "LISTENER_FILTER") continue;
    const name = patch.listener?.listenerFilter;
    const list = listener.listenerFilters;
    if (name === undefined || list.some((filter) => filter.name === name)) trace.match(patch);
    trace.apply(patch, () => {
      if (merges(patch)) return mergeListenerFilters(listener, patch, registry);
      const matches = (filter: { readonly name: string }): boolean => filter.name === name;
      return place(patch.operation, { list, value: () => contentFor(patch, ListenerFilterSchema), matches, specific: name !== undefined });
    });
  }
}

function mergeListenerFilters(listener: Listener, patch: Patch, registry: Registry): boolean {
  const named = listener.listenerFilters.filter((filter) => filter.name === patch.listener?.listenerFilter);
  for (const target of named) mergeFilter({ target, patch: contentFor(patch, ListenerFilterSchema), registry });
  return named.length > 0;
}

function patchFilterChains(listener: Listener, patching: Patching): void {
  const { patches, trace } = patching;
  listener.filterChains = listener.filterChains.filter((chain) => patchFilterChain(chain, listener, patching));
  const fallback = listener.defaultFilterChain;
  if (fallback !== undefined && !patchFilterChain(fallback, listener, patching)) delete listener.defaultFilterChain;
  for (const patch of patches) {
    if (patch.applyTo !== "FILTER_CHAIN" || patch.operation !== "ADD") continue;
    trace.match(patch);
    trace.apply(patch, () => listener.filterChains.push(contentFor(patch, FilterChainSchema)) > 0);
  }
}
