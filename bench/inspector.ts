import { get } from "node:http";
import { systemClock } from "../src/base/clock.ts";

/** A sample of where a program was, or of what it allocated, by call frame. */
export interface Frame {
  readonly functionName: string;
  readonly url: string;
  readonly lineNumber: number;
  readonly columnNumber: number;
}

/** Microseconds, or bytes, by the frame in which they were spent. */
export type Spent = ReadonlyMap<Frame, number>;

/** Looks into a running Node through its inspector. */
export interface Inspector {
  /** Runs `work` and gives where the processor was meanwhile. */
  cpu(work: () => Promise<void>): Promise<Spent>;
  /** The same for what was allocated, garbage included. */
  allocations(work: () => Promise<void>): Promise<Spent>;
  close(): void;
}

const INTERVAL_US = 250;
const INTERVAL_BYTES = 32 * 1024;
const TRIES = 50;
const RETRY_MS = 100;

/** Connects to a process that was started with `--inspect=127.0.0.1:PORT`. */
export async function inspect(port: number): Promise<Inspector> {
  const socket = new WebSocket(await addressOf(port));
  await new Promise((resolve, reject) => {
    socket.addEventListener("open", resolve, { once: true });
    socket.addEventListener("error", reject, { once: true });
  });
  let lastId = 0;
  const waiting = new Map<number, (result: unknown) => void>();
  socket.addEventListener("message", ({ data }) => {
    const { id, result } = JSON.parse(String(data)) as { readonly id?: number; readonly result?: unknown };
    if (id !== undefined) waiting.get(id)?.(result);
  });
  const ask = (method: string, params: object = {}): Promise<unknown> => {
    lastId += 1;
    const id = lastId;
    socket.send(JSON.stringify({ id, method, params }));
    return new Promise((resolve) => waiting.set(id, resolve));
  };
  await ask("Profiler.enable");
  await ask("Profiler.setSamplingInterval", { interval: INTERVAL_US });
  return {
    async cpu(work) {
      await ask("Profiler.start");
      await work();
      return timesIn((await ask("Profiler.stop")) as CpuAnswer);
    },
    async allocations(work) {
      const collected = { includeObjectsCollectedByMajorGC: true, includeObjectsCollectedByMinorGC: true };
      await ask("HeapProfiler.startSampling", { samplingInterval: INTERVAL_BYTES, ...collected });
      await work();
      return sizesIn((await ask("HeapProfiler.stopSampling")) as HeapAnswer);
    },
    close: () => socket.close(),
  };
}

async function addressOf(port: number): Promise<string> {
  for (let attempt = 0; attempt < TRIES; attempt++) {
    const [target] = (await fetched(port)) ?? [];
    if (target !== undefined) return target.webSocketDebuggerUrl;
    await systemClock.sleep(RETRY_MS);
  }
  throw new Error(`nobody can be inspected on port ${port}`);
}

function fetched(port: number): Promise<readonly { readonly webSocketDebuggerUrl: string }[] | undefined> {
  return new Promise((resolve) => {
    const request = get({ host: "127.0.0.1", port, path: "/json/list", agent: false }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (chunk: string) => {
        text += chunk;
      });
      response.on("end", () => resolve(JSON.parse(text) as readonly { readonly webSocketDebuggerUrl: string }[]));
    });
    request.on("error", () => resolve(undefined));
  });
}

interface CpuAnswer {
  readonly profile: {
    readonly nodes: readonly { readonly id: number; readonly callFrame: Frame }[];
    readonly samples: readonly number[];
    readonly timeDeltas: readonly number[];
  };
}

function timesIn({ profile: { nodes, samples, timeDeltas } }: CpuAnswer): Spent {
  const frames = new Map(nodes.map(({ id, callFrame }) => [id, callFrame]));
  const spent = new Map<Frame, number>();
  samples.forEach((id, index) => {
    const frame = frames.get(id);
    if (frame !== undefined) spent.set(frame, (spent.get(frame) ?? 0) + (timeDeltas[index] ?? 0));
  });
  return spent;
}

interface HeapNode {
  readonly callFrame: Frame;
  readonly selfSize: number;
  readonly children: readonly HeapNode[];
}

interface HeapAnswer {
  readonly profile: { readonly head: HeapNode };
}

function sizesIn({ profile }: HeapAnswer): Spent {
  const spent = new Map<Frame, number>();
  const open: HeapNode[] = [profile.head];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    spent.set(node.callFrame, node.selfSize);
    open.push(...node.children);
  }
  return spent;
}
