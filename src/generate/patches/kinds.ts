import { fromBinary } from "@bufbuild/protobuf";
import { INBOUND_PASSTHROUGH_CLUSTER } from "../../envoy/cluster/cluster-name.ts";
import { applyPatches } from "../../envoy/patch/apply.ts";
import { matchesListener } from "../../envoy/patch/match-listener.ts";
import { type GatewayPorts, matchesTable } from "../../envoy/patch/match-route.ts";
import { type ApplyTo, inContext, type Patch, type PatchContext } from "../../envoy/patch/patch.ts";
import { matchesCluster, patchCluster, servicesOf } from "../../envoy/patch/patch-cluster.ts";
import { patchListener } from "../../envoy/patch/patch-listener.ts";
import { patchTable } from "../../envoy/patch/patch-table.ts";
import { NO_OUTCOME } from "../../envoy/patch/trace.ts";
import { isDivided } from "../../envoy/route/route-table.ts";
import { ClusterSchema } from "../../gen/envoy/config/cluster/v3/cluster_pb.js";
import { ListenerSchema } from "../../gen/envoy/config/listener/v3/listener_pb.js";
import type { ProxyView } from "../../model/proxy.ts";
import type { Encoded } from "../../wire/encoded.ts";
import { CLUSTER_TYPE, EXTENSION_CONFIG_TYPE, LISTENER_TYPE, ROUTE_TYPE } from "../../wire/type-urls.ts";
import { addressClash, listenerFacts } from "./listener-facts.ts";
import type { KindRules, Scene } from "./patched-kind.ts";
import type { PatchPlan } from "./plan.ts";

const LISTENER_PARTS: ReadonlySet<ApplyTo> = new Set(["LISTENER", "LISTENER_FILTER", "FILTER_CHAIN", "NETWORK_FILTER", "HTTP_FILTER"]);
const ROUTE_PARTS: ReadonlySet<ApplyTo> = new Set(["ROUTE_CONFIGURATION", "VIRTUAL_HOST", "HTTP_ROUTE"]);

const isRouter = ({ type }: ProxyView): boolean => type === "router";

/** A whole resource for any side is added once: on the outbound side of a sidecar, or at a gateway. One for a sidecar's inbound side is its too. */
const addsAt =
  (router: boolean) =>
  ({ context }: Patch): boolean =>
    context === "ANY" || (context === "GATEWAY") === router;

/** Clusters are matched by name, so only those that match are looked into. */
export const clusterRules: KindRules = {
  typeUrl: CLUSTER_TYPE,
  clash: () => undefined,
  scene(plan, view) {
    const router = isRouter(view);
    const patches = plan.patches.filter(({ applyTo }) => applyTo === "CLUSTER");
    return {
      id: router ? "clusters@router" : "clusters",
      patches,
      adds: addsAt(router),
      concerning: (resource) => {
        const context = clusterContext(resource.name, router);
        return { context, patches: patches.filter((patch) => concernsCluster(patch, resource, context)) };
      },
      apply: ({ body }, list) =>
        applyPatches({
          schema: ClusterSchema,
          body,
          patches: list,
          registry: plan.registry,
          patch: (cluster, some, trace) => patchCluster(cluster, { patches: some, registry: plan.registry, trace }),
        }),
    };
  },
};

/** Configurations that filters ask for by name: all of them are added by patches, for every side. */
export const extensionRules: KindRules = {
  typeUrl: EXTENSION_CONFIG_TYPE,
  clash: () => undefined,
  scene: (plan) => ({
    id: "extensions",
    patches: plan.patches.filter(({ applyTo }) => applyTo === "EXTENSION_CONFIG"),
    adds: () => true,
    concerning: () => ({ context: "SIDECAR_OUTBOUND", patches: [] }),
    apply: ({ body }) => ({ body, outcome: NO_OUTCOME }),
  }),
};

function clusterContext(name: string, router: boolean): PatchContext {
  if (router) return "GATEWAY";
  return name.startsWith("inbound|") || name === INBOUND_PASSTHROUGH_CLUSTER ? "SIDECAR_INBOUND" : "SIDECAR_OUTBOUND";
}

function concernsCluster(patch: Patch, { name, body }: Encoded, context: PatchContext): boolean {
  if (patch.operation === "ADD" || !inContext(patch, context)) return false;
  return matchesCluster(patch.cluster, name, () => servicesOf(fromBinary(ClusterSchema, body)));
}

/** Inbound listeners carry their routes, so patches on routes concern them as well. */
export const listenerRules: KindRules = {
  typeUrl: LISTENER_TYPE,
  clash: addressClash,
  scene(plan, view) {
    const router = isRouter(view);
    const patches = plan.patches.filter(
      ({ applyTo, context }) =>
        LISTENER_PARTS.has(applyTo) || (!router && ROUTE_PARTS.has(applyTo) && inContext({ context }, "SIDECAR_INBOUND")),
    );
    return {
      id: router ? "listeners@router" : "listeners",
      patches,
      adds: (patch) => patch.applyTo === "LISTENER" && addsAt(router)(patch),
      concerning: (resource) => {
        const facts = listenerFacts(resource);
        const context: PatchContext = router ? "GATEWAY" : facts.inbound ? "SIDECAR_INBOUND" : "SIDECAR_OUTBOUND";
        const concerns = (patch: Patch): boolean =>
          inContext(patch, context) && (ROUTE_PARTS.has(patch.applyTo) ? facts.inbound : matchesListener(patch, facts.listener));
        return { context, patches: patches.filter(concerns) };
      },
      apply: ({ body }, list, context) =>
        applyPatches({
          schema: ListenerSchema,
          body,
          patches: list,
          registry: plan.registry,
          patch: (listener, some, trace) => patchListener(listener, { context, patches: some, registry: plan.registry, trace }),
        }),
    };
  },
};

/** Tables are matched by name; one that matches is taken apart, for tables are put together from encoded virtual hosts. */
export const routeRules = (portsOf: (view: ProxyView) => GatewayPorts): KindRules => ({
  typeUrl: ROUTE_TYPE,
  clash: () => undefined,
  scene: (plan, view) => routeScene(plan, view, portsOf),
});

/** Hosts are added to a table that leaves its hosts to discovery as such hosts, see `virtualHostRules`. */
export const addsHost = ({ applyTo, operation }: Patch): boolean => applyTo === "VIRTUAL_HOST" && operation === "ADD";

function routeScene(plan: PatchPlan, view: ProxyView, portsOf: (view: ProxyView) => GatewayPorts): Scene {
  const context: PatchContext = isRouter(view) ? "GATEWAY" : "SIDECAR_OUTBOUND";
  const patches = plan.patches.filter((patch) => ROUTE_PARTS.has(patch.applyTo) && inContext(patch, context));
  const asksForPort = context === "GATEWAY" && patches.some(({ route }) => route?.port !== undefined);
  const ports = asksForPort ? portsOf(view) : [];
  return {
    id: `routes@${context}${asksForPort ? JSON.stringify(ports) : ""}`,
    patches,
    adds: () => false,
    concerning: (table) => {
      const here = patches.filter((patch) => matchesTable(patch, table.name, { context, ports }));
      return { context, patches: here.some(addsHost) && isDivided(table) ? here.filter((patch) => !addsHost(patch)) : here };
    },
    apply: ({ body }, list) => patchTable({ body, context, ports, patches: list, registry: plan.registry }),
  };
}
