import { finishSliced, nextTurn } from "../base/slice.ts";
import { reportedProxies } from "../debug/reported-proxies.ts";
import type { Parts } from "./control-plane.ts";
import { patchStatus } from "./patch-metrics.ts";

const SWEEP_MS = 2_000;
/** While there is more to forget than one sweep takes, the next one follows soon. */
const SWEEP_ON_MS = 50;
const SWEEP_NODES = 1_000;

/** Tells the metrics where to look when they are asked. */
export function observe({ metrics, world, store, mesh, sources, leases, xds, options }: Parts): void {
  metrics.observe({
    services: () =>
      world.context.registry.namespaces().reduce((sum, namespace) => sum + world.context.registry.servicesIn(namespace).length, 0),
    virtualServices: () => store.list().filter(({ object }) => object.kind === "VirtualService").length,
    engine: () => world.engine.stats(),
    sharing: leases.sharing,
    meshReloadFailed: () => mesh.problems.length > 0,
    sourcesFailed: () => sources.states().filter(({ failure }) => failure !== undefined).length,
    patches: mesh.current.settings.envoyFilterStats
      ? async () => {
          await nextTurn(); // The other metrics have had this one.
          return patchStatus(await finishSliced(world.patchReport(reportedProxies(xds)), options.clock));
        }
      : undefined,
  });
}

/** Forgets what proxies that went away had asked for. A little at a time: others share the loop. */
export function sweepRegularly({ options, world, xds, leases }: Pick<Parts, "options" | "world" | "xds" | "leases">): () => void {
  let cancel: () => void = () => {};
  const turn = (): void => {
    leases.release(new Set(xds.nodes()));
    const forgotten = world.engine.sweep(SWEEP_NODES);
    cancel = options.clock.after(forgotten < SWEEP_NODES ? SWEEP_MS : SWEEP_ON_MS, turn);
  };
  cancel = options.clock.after(SWEEP_MS, turn);
  return () => cancel();
}
