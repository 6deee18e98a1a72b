import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Contestant, startOurs, startPeer } from "./contestant.ts";
import { floors } from "./floors.ts";
import { round, tellRaw } from "./measurement.ts";
import { type Compared, compare, FIGURES, type Run, type RunName } from "./peer-figures.ts";
import { type LoadClient, type LoadLine, type LoadShape, loadClient } from "./xdsload.ts";

/** The mesh that is compared in, and the smaller one that is restarted. */
export interface PeerExtent {
  readonly scene: LoadShape;
  readonly restarted: LoadShape;
  /** A restart takes less than a second, into which whatever else the machine does falls or not: of so many counts the one in the middle. */
  readonly restarts: number;
  /** How long certificates are asked for. */
  readonly signingSeconds: number;
}

export const FULL_PEER: PeerExtent = {
  scene: { services: 1000, endpoints: 10, virtualServices: 200, destinationRules: 200, namespaces: 50, proxies: 500, classes: 50 },
  restarted: { services: 500, endpoints: 5, virtualServices: 100, destinationRules: 100, namespaces: 20, proxies: 200, classes: 20 },
  restarts: 5,
  signingSeconds: 10,
};

/** Just large enough that every row has something to measure. */
export const QUICK_PEER: PeerExtent = {
  scene: { services: 40, endpoints: 3, virtualServices: 8, destinationRules: 8, namespaces: 4, proxies: 20, classes: 4 },
  restarted: { services: 20, endpoints: 2, virtualServices: 4, destinationRules: 4, namespaces: 2, proxies: 8, classes: 2 },
  restarts: 1,
  signingSeconds: 1,
};

const MODES = {
  plain: "init,route-change:5,endpoint-change:5,noop-change:3,null-change:4,churn,idle,idle,idle",
  vhds: "init,route-change:5",
  restart: "init,restart",
} as const satisfies Record<Exclude<RunName, "csr">, string>;
const SIGNING_CLIENTS = 4;

/** Measures ours, and a peer where there is one, one after the other with the same client and the same files. */
export async function comparePeer(
  command: string | undefined,
  extent: PeerExtent,
  told: (row: Compared) => void,
): Promise<readonly Compared[]> {
  const client = loadClient();
  const work = mkdtempSync(join(tmpdir(), "bench-peer-"));
  try {
    const ours = await runAll(["plain", "vhds", "restart"], { who: "ours", client, extent, work, start: startOurs });
    const start = (scene: string, directory: string) => startPeer(command ?? "", scene, directory);
    const peer: ReadonlyMap<RunName, Run> =
      command === undefined ? new Map() : await runAll(["plain", "restart"], { who: "peer", client, extent, work, start });
    const rows = [...FIGURES.flatMap((figure) => compare(figure, ours, peer) ?? []), ...(await floors(client, ours, extent.scene.proxies))];
    for (const row of rows) told(row);
    return rows;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** One contestant and what it is measured in. */
export interface Match {
  /** What it is called in what is told while it is measured. */
  readonly who: string;
  readonly client: LoadClient;
  readonly extent: PeerExtent;
  readonly work: string;
  readonly start: (scene: string, work: string) => Promise<Contestant>;
  /** How proxies call it, as flags of the client; plaintext where it is left out. */
  readonly calls?: (contestant: Contestant, places: { readonly scene: string; readonly work: string }) => readonly string[];
}

/** Runs these one after the other, each on a server and files of its own. */
export async function runAll(names: readonly RunName[], match: Match): Promise<ReadonlyMap<RunName, Run>> {
  const runs = new Map<RunName, Run>();
  for (const name of names) runs.set(name, name === "restart" ? await middleRestart(match) : await runOne(name, match));
  return runs;
}

async function middleRestart(match: Match): Promise<Run> {
  const runs: Run[] = [];
  while (runs.length < match.extent.restarts) runs.push(await runOne("restart", match));
  return middleOf(runs);
}

/**
 * Of each figure of a restart the one in the middle, of what was sent again the most. When the last is served depends on how long chance lets him wait before he calls again,
 * and not on what the restart costs: so the two are in the middle of runs of their own.
 */
export function middleOf(runs: readonly Run[]): Run {
  const restarts = runs.flatMap(({ lines }) => lines.get("restart") ?? []);
  const by = (figure: (line: LoadLine) => number): readonly LoadLine[] => restarts.toSorted((a, b) => figure(a) - figure(b));
  const middle = (lines: readonly LoadLine[]): LoadLine | undefined => lines[Math.floor(lines.length / 2)];
  const [first] = runs;
  const cpu = middle(by((line) => line.srv_cpu_s ?? 0));
  if (first === undefined || cpu === undefined) throw new Error("no restart was measured");
  const served = middle(by((line) => line.served?.last_ms ?? Number.POSITIVE_INFINITY))?.served;
  const resent = by((line) => line.resent?.total?.bytes ?? 0).at(-1)?.resent;
  const restart: LoadLine = { ...cpu, ...(served !== undefined && { served }), ...(resent !== undefined && { resent }) };
  return { ...first, lines: new Map([...first.lines, ["restart", restart]]) };
}

const inPlaintext = ({ grpcPort }: Contestant): readonly string[] => ["--address", `127.0.0.1:${grpcPort}`];

async function runOne(name: RunName, { who, client, extent, work, start, calls = inPlaintext }: Match): Promise<Run> {
  const directory = mkdtempSync(join(work, `${name}-`));
  const shape = name === "plain" || name === "vhds" ? extent.scene : extent.restarted;
  const scene = join(directory, "scene");
  mkdirSync(scene);
  client.generate(scene, shape);
  const contestant = await start(scene, directory);
  try {
    const ready = { readyMs: contestant.readyMs, rssMb: contestant.rssAtReadyMb };
    tellRaw({ who, run: name, mode: "start", ...ready });
    const called = calls(contestant, { scene, work: directory });
    const run = (command: string, flags: readonly string[]): Promise<readonly LoadLine[]> =>
      client.run(command, [...called, ...flags], (line) => tellRaw({ who, run: name, ...line }));
    if (name !== "csr") return { lines: byMode(await run("run", proxiesFlags(name, { client, contestant, scene, shape }))), start: ready };
    const flags = ["-c", String(SIGNING_CLIENTS), "--duration", `${extent.signingSeconds}s`, "--pid", pidOf(contestant)];
    await run("csr", flags); // Until the code is compiled, others are measured than those that serve.
    return { lines: byMode(await run("csr", flags)), start: ready };
  } finally {
    await contestant.stop();
  }
}

interface Visited {
  readonly client: LoadClient;
  readonly contestant: Contestant;
  readonly scene: string;
  readonly shape: LoadShape;
}

const proxiesFlags = (name: keyof typeof MODES, { client, contestant, scene, shape }: Visited): readonly string[] => [
  ...["--gen", scene, "--pid-file", contestant.pidFile],
  ...["--proxies", String(shape.proxies), "--classes", String(shape.classes), "--mode", MODES[name]],
  ...(name === "vhds" ? ["--vhds"] : []),
  ...(name === "restart" ? ["--restart-cmd", `${client.restartScript} ${contestant.pidFile} ${contestant.readyUrl}`] : []),
];

const pidOf = ({ pidFile }: Contestant): string => readFileSync(pidFile, "utf8");

/**
 * The last line of each mode; of doing nothing that with the least CPU: what was put off, such as to keep what a restart would need or to collect the heap, falls into
 * one of them, and is not what doing nothing takes.
 */
export function byMode(lines: readonly LoadLine[]): ReadonlyMap<string, LoadLine> {
  const cpu = ({ srv_cpu_s = Number.POSITIVE_INFINITY }: LoadLine): number => srv_cpu_s;
  const [idle] = lines.filter(({ mode }) => mode === "idle").toSorted((a, b) => cpu(a) - cpu(b));
  return new Map([...lines, ...(idle === undefined ? [] : [idle])].map((line) => [line.mode, line]));
}

/** The JSON line of a row. */
export const comparedLine = (row: Compared, bench = "peer"): string =>
  JSON.stringify({
    bench,
    ...row,
    ours: round(row.ours),
    ...(row.peer !== undefined && { peer: round(row.peer) }),
    ...(row.ratio !== undefined && { ratio: round(row.ratio) }),
  });

/** The rows as a table. */
export function comparedTable(rows: readonly Compared[]): readonly string[] {
  return [
    "| scenario | unit | ours | peer | ratio | goal |",
    "| --- | --- | --- | --- | --- | --- |",
    ...rows.map(({ scenario, unit, ours, peer, ratio, goal, ok }) => {
      const verdict = goal === undefined ? "" : `${goal}${ok === false ? ": **missed**" : ""}`;
      const number = (value: number | undefined): string => (value === undefined ? "" : String(round(value)));
      return `| ${scenario} | ${unit} | **${number(ours)}** | ${number(peer)} | ${number(ratio)} | ${verdict} |`;
    }),
  ];
}
