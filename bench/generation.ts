import { systemClock } from "../src/base/clock.ts";
import { shortTypeName } from "../src/wire/type-urls.ts";
import { type Emit, type Measurement, median } from "./measurement.ts";
import { routeEdit, type SceneShape, sceneFiles, sceneProxies } from "./scene.ts";
import { type SceneWorld, sceneWorld } from "./scene-world.ts";

const MB = 1024 * 1024;
/** What the whole configuration of a sidecar, and what one changed VirtualService, may cost. */
const FIRST_TIME_MS = 80;
const ROUTE_CHANGE_MS = 5;
const ROUTE_CHANGES = 20;

/** Reading and generation alone, in this process: no files, no network. Best run in a process of its own, where nothing else fills the heap. */
export function measureGeneration(shape: SceneShape, emit: Emit): void {
  const scene = sceneWorld(shape, { load: false });
  const texts = [...sceneFiles(shape)].filter(([file]) => file.startsWith("conf/")).map(([, text]) => text);
  const common = { services: shape.services, endpoints: shape.endpoints };
  const { ms, result: objects } = timed(() => texts.reduce((sum, text) => sum + scene.put(text), 0));
  emit({
    bench: "load",
    value: ms,
    unit: "ms",
    details: { ...common, objects, text_mb: texts.reduce((sum, text) => sum + text.length, 0) / MB },
  });

  emit({ bench: "prepare-ahead", value: timed(() => scene.prepare()).ms, unit: "ms", details: common });
  const proxies = sceneProxies(shape);
  const [first, second] = [proxies[0], proxies[shape.classes]];
  const other = proxies[1];
  if (first === undefined || second === undefined || other === undefined)
    throw new Error("a scene to generate from needs two proxies of one class, and one of another");
  for (const { bench, proxy, limit } of [
    { bench: "generate-first-proxy", proxy: first, limit: FIRST_TIME_MS },
    { bench: "generate-same-class", proxy: second },
    { bench: "generate-other-namespace", proxy: other, limit: FIRST_TIME_MS },
  ]) {
    emit({ ...generated(scene, proxy), bench, unit: "ms", ...(limit !== undefined && { limit }) });
  }
  emit({ ...changedRoute(scene, first), bench: "generate-route-change", unit: "ms", limit: ROUTE_CHANGE_MS });
  const { nodes, edges } = scene.world.engine.stats();
  globalThis.gc?.();
  emit({ bench: "engine", value: process.memoryUsage().heapUsed / MB, unit: "MB", details: { ...common, nodes, edges, inputs: objects } });
}

function generated(scene: SceneWorld, proxy: Parameters<SceneWorld["ask"]>[0]): Pick<Measurement, "value" | "details"> {
  const details: Record<string, number> = {};
  let [bytes, resources] = [0, 0];
  const runsBefore = scene.world.engine.stats().runs;
  let lap = systemClock.monotonic();
  const { ms } = timed(() =>
    scene.ask(proxy, (typeUrl, set) => {
      const now = systemClock.monotonic();
      details[`${shortTypeName(typeUrl)}_ms`] = now - lap;
      lap = now;
      resources += set.resources.size;
      for (const { body } of set.resources.values()) bytes += body.length;
    }),
  );
  return { value: ms, details: { ...details, resources, size_mb: bytes / MB, query_runs: scene.world.engine.stats().runs - runsBefore } };
}

/** One VirtualService changed, as often as it takes for a median: from its text to the route tables of a proxy. */
function changedRoute(scene: SceneWorld, proxy: Parameters<SceneWorld["ask"]>[0]): Pick<Measurement, "value" | "details"> {
  const changes = Array.from({ length: ROUTE_CHANGES }, (_, step) => {
    const before = scene.world.engine.stats().runs;
    const { ms: readMs } = timed(() => scene.put(routeEdit(step).text));
    const tablesMs = generated(scene, proxy).details?.rds_ms;
    return { readMs, tablesMs: Number(tablesMs), runs: scene.world.engine.stats().runs - before };
  });
  const of = (pick: (change: (typeof changes)[number]) => number): number => median(changes.map(pick));
  return {
    value: of(({ readMs, tablesMs }) => readMs + tablesMs),
    details: {
      changes: ROUTE_CHANGES,
      read_ms: of(({ readMs }) => readMs),
      tables_ms: of(({ tablesMs }) => tablesMs),
      query_runs: of(({ runs }) => runs),
    },
  };
}

function timed<T>(work: () => T): { readonly ms: number; readonly result: T } {
  const start = systemClock.monotonic();
  const result = work();
  return { ms: systemClock.monotonic() - start, result };
}
