import { get } from "node:http";
import { systemClock } from "../src/base/clock.ts";

/** A sample of where a program was, or of what it allocated, by call frame. */
export interface Frame {
  readonly functionName: string;
  readonly url: string;
  readonly lineNumber: number;
  readonly columnNumber: number;
}

/** Microseconds, or bytes, that were spent in one frame. */
export interface Spending {
  readonly frame: Frame;
  /** The frame itself, or where it has no script (`Map`, `writev`) the nearest caller that has one. */
  readonly within: Frame;
  readonly value: number;
}

export type Spent = readonly Spending[];

/** Looks into a running Node through its inspector. */
export interface Inspector {
  /** Runs `work` and gives where the processor was meanwhile. */
  cpu(work: () => Promise<void>): Promise<Spent>;
  /** The same for what was allocated, garbage included. */
  allocations(work: () => Promise<void>): Promise<Spent>;
  /** Collects all garbage there is. */
  collect(): Promise<void>;
  /** Lets a process go on that was started with `--inspect-wait` and waits to be looked into. */
  release(): Promise<void>;
  close(): void;
}

const INTERVAL_US = 250;
const INTERVAL_BYTES = 32 * 1024;
const TRIES = 100;
const RETRY_MS = 50;

/** Connects to a process that was started with `--inspect=127.0.0.1:PORT` or `--inspect-wait`. */
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
    collect: async () => void (await ask("HeapProfiler.collectGarbage")),
    release: async () => void (await ask("Runtime.runIfWaitingForDebugger")),
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

interface CpuNode {
  readonly id: number;
  readonly callFrame: Frame;
  readonly children?: readonly number[];
}

interface CpuAnswer {
  readonly profile: { readonly nodes: readonly CpuNode[]; readonly samples: readonly number[]; readonly timeDeltas: readonly number[] };
}

function timesIn({ profile: { nodes, samples, timeDeltas } }: CpuAnswer): Spent {
  const times = new Map<number, number>();
  samples.forEach((id, index) => {
    times.set(id, (times.get(id) ?? 0) + (timeDeltas[index] ?? 0));
  });
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const [root] = nodes;
  const spent: Spending[] = [];
  const open = root === undefined ? [] : [{ node: root, caller: root.callFrame }];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { id, callFrame: frame, children = [] } = next.node;
    const within = scripted(frame, next.caller);
    spent.push({ frame, within, value: times.get(id) ?? 0 });
    open.push(...children.flatMap((child) => byId.get(child) ?? []).map((node) => ({ node, caller: within })));
  }
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

function sizesIn({ profile: { head } }: HeapAnswer): Spent {
  const spent: Spending[] = [];
  const open = [{ node: head, caller: head.callFrame }];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { callFrame: frame, selfSize: value, children } = next.node;
    const within = scripted(frame, next.caller);
    spent.push({ frame, within, value });
    open.push(...children.map((node) => ({ node, caller: within })));
  }
  return spent;
}

const scripted = (frame: Frame, caller: Frame): Frame => (frame.url === "" && caller.url !== "" ? caller : frame);
