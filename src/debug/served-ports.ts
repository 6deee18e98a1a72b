import type { ProxyView } from "../model/proxy.ts";
import type { ServedPort } from "./api-mesh-types.ts";
import type { DebugDeps } from "./debug-deps.ts";
import { originFinder } from "./object-origin.ts";
import { registryService } from "./registry-dump.ts";
import { proxyIdOf } from "./sync-status.ts";

/** The service ports that each connected proxy serves, by its name, as Istio's `/debug/instancesz` gives them. */
export function servedPorts({
  xds,
  world,
  store,
}: Pick<DebugDeps, "xds" | "world" | "store">): Readonly<Record<string, Iterable<ServedPort>>> {
  const views = new Map(xds.state().flatMap(({ node, view }) => (view === undefined ? [] : [[proxyIdOf(node), view]])));
  const originOf = originFinder(store);
  const { registry } = world.context;
  const portsOf = function* (view: ProxyView): Generator<ServedPort> {
    const hint = { cluster: view.remoteCluster, pod: view.pod, claim: view.claim };
    for (const { service: ref, servicePort, endpoint } of view.addresses.flatMap((one) =>
      registry.instancesAt(one, view.namespace, hint),
    )) {
      const service = registry.service(ref);
      if (service === undefined) continue;
      const protocol = service.ports.find(({ number }) => number === servicePort.number)?.protocol ?? "";
      const port = { name: servicePort.name, port: servicePort.number, protocol, TargetPort: endpoint.port };
      yield { Service: registryService(service, originOf), Port: port };
    }
  };
  return Object.fromEntries([...views].map(([id, view]) => [id, { [Symbol.iterator]: () => portsOf(view) }]));
}
