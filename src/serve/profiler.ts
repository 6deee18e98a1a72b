import { type Profiler as Cpu, type HeapProfiler, Session } from "node:inspector";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { Clock } from "../base/clock.ts";
import { type CallFrame, pprofBytes, type Sample } from "../debug/pprof.ts";

/** Where this process spends its time, and what it keeps in memory. One look at a time: the process is slower meanwhile. */
export interface Profiler {
  /** A look of so many seconds, compressed, as `go tool pprof` opens it; undefined while another one is taken. */
  take(what: keyof typeof LOOKS, seconds: number): Promise<Buffer | undefined>;
}

/** 100 times a second, as Go's: often enough for what lasts, and little to hand over at the end. */
const CPU_PERIOD_US = 10_000;
/** Of so many bytes allocated one place is noted: V8's own default. */
const HEAP_PERIOD_BYTES = 32_768;

/** Uses the profilers of V8, which run in the process itself: they work from a snapshot as from a bundle, and cost nothing while nobody looks. */
export function createProfiler(clock: Clock): Profiler {
  let busy = false;
  return {
    async take(what, seconds) {
      if (busy) return undefined;
      busy = true;
      const session = new Session();
      try {
        session.connect();
        return await promisify(gzip)(await LOOKS[what](session, seconds, clock));
      } finally {
        session.disconnect();
        busy = false;
      }
    },
  };
}

type Look = (session: Session, seconds: number, clock: Clock) => Promise<Buffer>;

/** CPU time by function. Time in which nothing was to be done is left out. */
const cpu: Look = async (session, seconds, clock) => {
  const { startedAt, durationMs } = await during(seconds, clock, async () => {
    await asked((done) => session.post("Profiler.enable", done));
    await asked((done) => session.post("Profiler.setSamplingInterval", { interval: CPU_PERIOD_US }, done));
    await asked((done) => session.post("Profiler.start", done));
  });
  const { profile } = await answered<Cpu.StopReturnType>((done) => session.post("Profiler.stop", done));
  return pprofBytes({
    types: [
      { type: "samples", unit: "count" },
      { type: "cpu", unit: "nanoseconds" },
    ],
    samples: cpuSamples(profile),
    startedAt,
    durationMs,
    period: { type: "cpu", unit: "nanoseconds", value: CPU_PERIOD_US * 1_000 },
  });
};

/** What was allocated during the look and is still in use at its end, by the function that allocated it; V8 collects everything else first. */
const heap: Look = async (session, seconds, clock) => {
  const { startedAt, durationMs } = await during(seconds, clock, async () => {
    await asked((done) => session.post("HeapProfiler.enable", done));
    await asked((done) => session.post("HeapProfiler.startSampling", { samplingInterval: HEAP_PERIOD_BYTES }, done));
  });
  const { profile } = await answered<HeapProfiler.StopSamplingReturnType>((done) => session.post("HeapProfiler.stopSampling", done));
  return pprofBytes({
    types: [{ type: "inuse_space", unit: "bytes" }],
    samples: [...heapSamples(profile.head, [])],
    startedAt,
    durationMs,
    period: { type: "space", unit: "bytes", value: HEAP_PERIOD_BYTES },
  });
};

const LOOKS = { cpu, heap } as const satisfies Record<string, Look>;

async function during(
  seconds: number,
  clock: Clock,
  begin: () => Promise<void>,
): Promise<{ readonly startedAt: number; readonly durationMs: number }> {
  const [startedAt, from] = [clock.now(), clock.monotonic()];
  await begin();
  await new Promise<void>((resolve) => clock.after(seconds * 1_000, resolve));
  return { startedAt, durationMs: clock.monotonic() - from };
}

type Callback<T> = (error: Error | null, result?: T) => void;

const asked = (post: (done: (error: Error | null) => void) => void): Promise<void> =>
  new Promise((resolve, reject) => post((error) => (error === null ? resolve() : reject(error))));

const answered = <T>(post: (done: Callback<T>) => void): Promise<T> =>
  new Promise((resolve, reject) => post((error, result) => (error === null && result !== undefined ? resolve(result) : reject(error))));

const IDLE = "(idle)";

function cpuSamples({ nodes, samples = [], timeDeltas = [] }: Cpu.Profile): readonly Sample[] {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const parents = new Map(nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id] as const)));
  const spent = new Map<number, { count: number; us: number }>();
  for (const [index, id] of samples.entries()) {
    if (index === 0) continue; // What is before the first is the profiler's own: it looks at all code there is.
    const seen = spent.get(id) ?? { count: 0, us: 0 };
    spent.set(id, { count: seen.count + 1, us: seen.us + Math.max(timeDeltas[index] ?? 0, 0) });
  }
  const stackOf = (id: number): readonly CallFrame[] => {
    const stack: CallFrame[] = [];
    for (let at: number | undefined = id; at !== undefined; at = parents.get(at)) {
      const frame = byId.get(at)?.callFrame;
      if (frame !== undefined && parents.has(at)) stack.push(frame);
    }
    return stack;
  };
  return [...spent]
    .filter(([id, { us }]) => us > 0 && byId.get(id)?.callFrame.functionName !== IDLE)
    .map(([id, { count, us }]) => ({ stack: stackOf(id), values: [count, us * 1_000] }));
}

function* heapSamples(node: HeapProfiler.SamplingHeapProfileNode, above: readonly CallFrame[]): Generator<Sample> {
  const stack = [node.callFrame, ...above];
  if (node.selfSize > 0) yield { stack, values: [Math.round(node.selfSize)] };
  for (const child of node.children) yield* heapSamples(child, stack);
}
