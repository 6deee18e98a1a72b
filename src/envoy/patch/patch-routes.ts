import { type Route, RouteSchema, type VirtualHost, VirtualHostSchema } from "../../gen/envoy/config/route/v3/route_components_pb.js";
import { type RouteConfiguration, RouteConfigurationSchema } from "../../gen/envoy/config/route/v3/route_pb.js";
import { type GatewayPorts, matchesHost, matchesRoute, matchesTable } from "./match-route.ts";
import { mergeInto } from "./merge.ts";
import { contentFor, inContext, listMode, merges, type Patch, type PatchContext } from "./patch.ts";
import { place } from "./place.ts";
import type { PatchTrace } from "./trace.ts";

/** What patches on routes are applied with. */
export interface RoutePatching {
  readonly context: PatchContext;
  readonly ports: GatewayPorts;
  /** In order; those for other kinds of resources are passed over. */
  readonly patches: readonly Patch[];
  readonly trace: PatchTrace;
}

/** Applies patches to a route table, which is modified: the table, then its virtual hosts with their routes, then hosts that are added. */
export function patchRoutes(table: RouteConfiguration, patching: RoutePatching): void {
  const { trace } = patching;
  const patches = patching.patches.filter((patch) => inContext(patch, patching.context) && matchesTable(patch, table.name, patching));
  const of = (applyTo: Patch["applyTo"]): readonly Patch[] => patches.filter((patch) => patch.applyTo === applyTo);
  for (const patch of of("ROUTE_CONFIGURATION")) {
    trace.match(patch);
    if (merges(patch)) trace.apply(patch, () => mergeValue(RouteConfigurationSchema, table, patch));
  }
  table.virtualHosts = table.virtualHosts.flatMap((host) => patchVirtualHost(host, patches, trace) ?? []);
  for (const patch of of("VIRTUAL_HOST")) {
    if (patch.operation !== "ADD") continue;
    trace.match(patch);
    trace.apply(patch, () => table.virtualHosts.push(contentFor(patch, VirtualHostSchema)) > 0);
  }
}

/** Applies those patches that are for hosts and their routes to a virtual host of a table that they are for; undefined when one removes it. */
export function patchVirtualHost(host: VirtualHost, patches: readonly Patch[], trace: PatchTrace): VirtualHost | undefined {
  const of = (applyTo: Patch["applyTo"]): readonly Patch[] => patches.filter((patch) => patch.applyTo === applyTo);
  const patched = patchHost(host, of("VIRTUAL_HOST"), trace);
  if (patched !== undefined) patchHostRoutes(patched, of("HTTP_ROUTE"), trace);
  return patched;
}

function mergeValue<S extends typeof RouteConfigurationSchema | typeof VirtualHostSchema | typeof RouteSchema>(
  schema: S,
  target: RouteConfiguration | VirtualHost | Route,
  patch: Patch,
): boolean {
  mergeInto({ schema, lists: listMode(patch) }, target, contentFor(patch, schema));
  return true;
}

/** The host after patches; undefined when one removes it. */
function patchHost(host: VirtualHost, patches: readonly Patch[], trace: PatchTrace): VirtualHost | undefined {
  let patched: VirtualHost | undefined = host;
  for (const patch of patches) {
    if (patched === undefined || patch.operation === "ADD" || !matchesHost(patch, patched)) continue;
    const target: VirtualHost = patched;
    trace.match(patch);
    trace.apply(patch, () => {
      if (merges(patch)) return mergeValue(VirtualHostSchema, target, patch);
      if (patch.operation === "REPLACE") patched = contentFor(patch, VirtualHostSchema);
      else if (patch.operation === "REMOVE") patched = undefined;
      return patched !== target;
    });
  }
  return patched;
}

/** Removing and merging first, for a route that is added is not merged into; then placing. `ADD` asks for the host only, not for a route of it. */
function patchHostRoutes(host: VirtualHost, patches: readonly Patch[], trace: PatchTrace): void {
  const here = patches.filter((patch) => matchesHost(patch, host));
  host.routes = host.routes.filter((route) => patchRoute(route, here, trace));
  for (const patch of here) {
    if (merges(patch) || patch.operation === "REMOVE") continue;
    const specific = patch.route?.route !== undefined;
    const found = !specific || patch.operation === "ADD" || host.routes.some((route) => matchesRoute(patch, route));
    if (!found) continue;
    trace.match(patch);
    const matches = (route: Route): boolean => matchesRoute(patch, route);
    trace.apply(patch, () => place(patch.operation, { list: host.routes, value: () => contentFor(patch, RouteSchema), matches, specific }));
  }
}

/** False when a patch removes the route. */
function patchRoute(route: Route, patches: readonly Patch[], trace: PatchTrace): boolean {
  for (const patch of patches) {
    if (!(merges(patch) || patch.operation === "REMOVE") || !matchesRoute(patch, route)) continue;
    trace.match(patch);
    if (patch.operation === "REMOVE") {
      trace.apply(patch, () => true);
      return false;
    }
    trace.apply(patch, () => mergeValue(RouteSchema, route, patch));
  }
  return true;
}
