import type { ProxyView } from "../model/proxy.ts";
import type { EgressListener, ImportedService, SidecarScope } from "./api-mesh-types.ts";
import type { DebugDeps } from "./debug-deps.ts";
import { originFinder } from "./object-origin.ts";

type Scope = ReturnType<DebugDeps["world"]["context"]["lookups"]["scope"]>;

/** What a proxy may see (`/debug/sidecarz`): names, which the other pages tell more of. */
export function sidecarScope({ world, store }: Pick<DebugDeps, "world" | "store">, view: ProxyView): SidecarScope {
  const { lookups } = world.context;
  const { namespace, sidecar, labels } = view;
  const scope = lookups.scope({ namespace, sidecar });
  const rulesOf = lookups.destinationRuleChooser({ clientNamespace: namespace, labels });
  const rules = scope.services.map((service) => [service.host, rulesOf(service)] as const);
  return {
    ...(sidecar !== undefined && { name: sidecar.split("/")[2] ?? "", sidecar: originFinder(store)(sidecar) }),
    namespace,
    outboundTrafficPolicy: {
      mode: scope.outboundPolicy,
      ...(scope.egressProxy !== undefined && { egressProxy: scope.egressProxy }),
    },
    services: scope.services.values().map(imported),
    egressListeners: scope.egress.values().map(egressListener),
    destinationRules: Object.fromEntries(rules.filter(([, keys]) => keys.length > 0)),
  };
}

const imported = ({ host, namespace, ports }: Scope["services"][number]): ImportedService => ({
  hostname: host,
  namespace,
  ...(ports !== undefined && { ports }),
});

const egressListener = ({ port, bind, captureMode, services, destinations, virtualServices }: Scope["egress"][number]): EgressListener => ({
  ...(port !== undefined && { port }),
  ...(bind !== "" && { bind }),
  captureMode,
  services: services.values().map(imported),
  destinations: destinations.values().map(imported),
  virtualServices,
});
