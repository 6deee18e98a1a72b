import { join } from "node:path";
import { median, tellRaw } from "./measurement.ts";
import type { Compared, Run, RunName } from "./peer-figures.ts";
import type { LoadClient, LoadLine } from "./xdsload.ts";

/** How many times what a bare server needs for the same bytes ours may take. */
const FLOOR_TIMES = 1.5;
/** A floor of some milliseconds swings by a third from one time to the next: of so many the middle one counts, as it does of changes. */
const MEASURED = 5;

/**
 * A row that has a floor: what ours took, how long the last proxy waited for it where that says something, and what it sent for it. `idle` is the share of a processor
 * that ours takes for doing nothing.
 */
interface Floored {
  readonly scenario: string;
  readonly run: RunName;
  readonly mode: string;
  cpu(line: LoadLine, idle: number): number | undefined;
  last?(line: LoadLine): number | undefined;
  sent(line: LoadLine): { readonly messages: number; readonly bytes: number } | undefined;
}

const change = {
  cpu: beyondIdle,
  last: (line: LoadLine) => line.median_last_ms,
  sent: (line: LoadLine) => line.iterations?.at(-1)?.received?.total,
};

/** Rows in which something is sent; the others have no floor. */
export const FLOORED: readonly Floored[] = [
  {
    scenario: "all proxies initialised",
    run: "plain",
    mode: "init",
    cpu: (line) => line.srv_cpu_until_init_s,
    last: (line) => line.init_total_ms,
    sent: (line) => line.received?.total,
  },
  { scenario: "route change", run: "plain", mode: "route-change", ...change },
  { scenario: "route change, VHDS", run: "vhds", mode: "route-change", ...change },
  { scenario: "endpoint change", run: "plain", mode: "endpoint-change", ...change },
  { scenario: "change for 10 of 500", run: "plain", mode: "noop-change", ...change },
  // When the last proxy has it depends on when the last change was made.
  {
    scenario: "5 changes a second for 10 s",
    run: "plain",
    mode: "churn",
    cpu: (line) => line.srv_cpu_s,
    sent: (line) => line.received?.total,
  },
];

/** A change is counted for until it has been quiet for a while; the floor from its first byte to its last. So what ours would have taken anyway is not counted. */
function beyondIdle({ srv_cpu_s_per_change, iterations = [] }: LoadLine, idle: number): number | undefined {
  const walls = iterations.map(({ wall_s = 0 }) => wall_s);
  return srv_cpu_s_per_change && Math.max(0, srv_cpu_s_per_change - idle * median(walls));
}

/** What is taken for doing nothing, as a share of one processor. */
const idleOf = (runs: ReadonlyMap<RunName, Run>): number => {
  const idle = runs.get("plain")?.lines.get("idle");
  return idle?.srv_cpu_s === undefined || !idle.wall_s ? 0 : idle.srv_cpu_s / idle.wall_s;
};

/** What a server that only sends bytes needs for those that ours sent, to as many clients. */
export async function floors(client: LoadClient, ours: ReadonlyMap<RunName, Run>, proxies: number): Promise<readonly Compared[]> {
  const rows: Compared[] = [];
  for (const floored of FLOORED) {
    const line = ours.get(floored.run)?.lines.get(floored.mode);
    const all = line && floored.sent(line);
    if (line === undefined || all === undefined || all.messages === 0) continue;
    const clients = Math.min(proxies, all.messages);
    const messages = Math.max(1, Math.round(all.messages / clients));
    const bytes = Math.round(all.bytes / clients / messages);
    const args = ["--proxies", String(clients), "--bytes", String(bytes), "--messages", String(messages), "--node", process.execPath];
    const script = ["--script", join(client.restartScript, "../floor.mjs"), "--label", floored.mode];
    const measured: LoadLine[] = [];
    for (let time = 0; time < MEASURED; time++)
      measured.push(...(await client.run("floor", [...args, ...script], (said) => tellRaw({ who: "floor", run: floored.run, ...said }))));
    rows.push(...againstFloor(floored, { line, idle: idleOf(ours) }, measured));
  }
  return rows;
}

/** The rows of one floor, by the middle of what was measured: CPU, and the time to the last proxy where there is one. */
export function againstFloor(
  { scenario, mode, cpu, last }: Floored,
  { line, idle }: { readonly line: LoadLine; readonly idle: number },
  measured: readonly LoadLine[],
): readonly Compared[] {
  const init = mode === "init";
  const cpus = measured.flatMap(({ server }) => (server === undefined ? [] : server.send_cpu_s + (init ? server.accept_cpu_s : 0)));
  // Proxies that connect are waited for from their first connection on, those that are there from the first byte to the last acknowledgement.
  const times = measured.flatMap(({ server, all_received }) => (init ? all_received?.last_ms : server && server.send_wall_s * 1000) ?? []);
  return [
    ...row(`${scenario}, ours against the floor`, { unit: "CPU s of the floor", ours: cpu(line, idle), needed: median(cpus) }),
    ...row(`${scenario} to the last proxy, ours against the floor`, { unit: "ms of the floor", ours: last?.(line), needed: median(times) }),
  ];
}

interface AgainstFloor {
  readonly unit: Compared["unit"];
  readonly ours: number | undefined;
  readonly needed: number;
}

function row(scenario: string, { unit, ours, needed }: AgainstFloor): readonly Compared[] {
  if (ours === undefined || !(needed > 0)) return [];
  const ratio = ours / needed;
  return [{ scenario, unit, ours, peer: needed, ratio, goal: `at most ${FLOOR_TIMES}×`, ok: ratio <= FLOOR_TIMES }];
}
