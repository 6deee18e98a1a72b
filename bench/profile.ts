import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { SourceMap } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { systemClock } from "../src/base/clock.ts";
import { freePort } from "../test/support/ports.ts";
import { Fleet, reachesAll } from "./fleet.ts";
import { type Frame, type Inspector, inspect, type Spent } from "./inspector.ts";
import type { Emit } from "./measurement.ts";
import { endpointEdit, remarkEdit, replaceFile, routeEdit, type SceneEdit, type SceneShape, sceneProxies, writeScene } from "./scene.ts";
import { startServer } from "./server.ts";

const CHANGES = 10;
const SETTLE_MS = 300;
const MB = 1024 * 1024;
/** Smaller shares are not worth a word. */
const SMALLEST_SHARE = 0.03;

/** Where the processor and the memory go: by folder of ours, by what is not ours, for each kind of work of a session. */
export async function profileSession(shape: SceneShape, emit: Emit): Promise<void> {
  const home = await mkdtemp(join(tmpdir(), "bench-"));
  await writeScene(home, shape);
  const port = await freePort();
  const server = await startServer(home, { NODE_OPTIONS: `--inspect=127.0.0.1:${port}` });
  const fleet = new Fleet(server.grpcPort);
  const inspector = await inspect(port);
  const placeOf = createPlaces();
  let step = 0;
  const change = (edit: (step: number) => SceneEdit, reaches: boolean) => async (): Promise<void> => {
    for (let turn = 0; turn < CHANGES; turn++) {
      step += 1;
      const next = edit(step);
      const apply = await replaceFile(home, next);
      if (reaches) await fleet.observe(apply, reachesAll(next), SETTLE_MS);
      else await apply().then(() => systemClock.sleep(SETTLE_MS));
    }
  };
  try {
    const [first, ...others] = sceneProxies(shape);
    const connect = (proxies: typeof others) => async (): Promise<void> => void (await fleet.connect(proxies));
    const scenes: readonly { readonly bench: string; readonly times: number; readonly once?: true; readonly work: () => Promise<void> }[] =
      [
        { bench: "first-proxy", times: 1, once: true, work: connect(first === undefined ? [] : [first]) },
        { bench: "other-proxies", times: others.length, once: true, work: connect(others) },
        { bench: "route-change", times: CHANGES, work: change(routeEdit, true) },
        { bench: "endpoint-change", times: CHANGES, work: change(endpointEdit, true) },
        { bench: "change-without-effect", times: CHANGES, work: change((at) => remarkEdit(shape, at), false) },
      ];
    for (const { bench, times, once, work } of scenes) {
      const spent = await inspector.cpu(work);
      emit({ bench: `cpu-${bench}`, value: busy(spent) / 1000 / times, unit: "ms", details: shares(spent, placeOf) });
      if (once !== true) await emitAllocations({ inspector, bench, times, work, placeOf, emit });
    }
  } finally {
    inspector.close();
    fleet.close();
    await server.stop();
    await rm(home, { recursive: true, force: true });
  }
}

interface Allocating {
  readonly inspector: Inspector;
  readonly bench: string;
  readonly times: number;
  readonly work: () => Promise<void>;
  readonly placeOf: (frame: Frame) => string;
  readonly emit: Emit;
}

async function emitAllocations({ inspector, bench, times, work, placeOf, emit }: Allocating): Promise<void> {
  const spent = await inspector.allocations(work);
  emit({ bench: `allocated-${bench}`, value: total(spent) / MB / times, unit: "MB", details: shares(spent, placeOf) });
}

const IDLE = "(idle)";

const total = (spent: Spent): number => [...spent.values()].reduce((sum, value) => sum + value, 0);

const busy = (spent: Spent): number => [...spent].reduce((sum, [{ functionName }, value]) => sum + (functionName === IDLE ? 0 : value), 0);

/** Share of each place, the largest first. */
function shares(spent: Spent, placeOf: (frame: Frame) => string): Readonly<Record<string, number>> {
  const places = new Map<string, number>();
  for (const [frame, value] of spent) {
    if (frame.functionName === IDLE) continue;
    const place = placeOf(frame);
    places.set(place, (places.get(place) ?? 0) + value);
  }
  const whole = busy(spent);
  return Object.fromEntries(
    [...places]
      .map(([place, value]) => [place, value / whole] as const)
      .filter(([, share]) => share >= SMALLEST_SHARE)
      .sort(([, a], [, b]) => b - a),
  );
}

const NATIVE: Readonly<Record<string, string>> = { "(garbage collector)": "collector", "(program)": "system", "(root)": "system" };

/** Tells what a frame belongs to: a folder of ours, a package, Node, the collector, or what Node asks of the system. */
function createPlaces(): (frame: Frame) => string {
  const maps = new Map<string, SourceMap | undefined>();
  const mapOf = (url: string): SourceMap | undefined => {
    if (!maps.has(url)) maps.set(url, readMap(url));
    return maps.get(url);
  };
  return ({ functionName, url, lineNumber, columnNumber }) => {
    const native = NATIVE[functionName];
    if (native !== undefined) return native;
    if (!url.startsWith("file:")) return "node";
    const entry = mapOf(url)?.findEntry(lineNumber, columnNumber);
    const source = entry !== undefined && "originalSource" in entry ? entry.originalSource : url;
    return /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(source)?.[1] ?? /src\/([^/]+)\//.exec(source)?.[1] ?? "ours";
  };
}

function readMap(url: string): SourceMap | undefined {
  try {
    return new SourceMap(JSON.parse(readFileSync(`${fileURLToPath(url)}.map`, "utf8")) as ConstructorParameters<typeof SourceMap>[0]);
  } catch {
    return undefined;
  }
}
