import { join } from "node:path";
import type { Compared, Run, RunName } from "./peer-figures.ts";
import type { LoadClient, LoadLine } from "./xdsload.ts";

/** How many times what a bare server needs for the same bytes ours may take. */
const FLOOR_TIMES = 1.5;

/** A row that has a floor: what ours took, and what it sent for it. */
interface Floored {
  readonly scenario: string;
  readonly run: RunName;
  readonly mode: string;
  cpu(line: LoadLine): number | undefined;
  sent(line: LoadLine): { readonly messages: number; readonly bytes: number } | undefined;
}

const change = { cpu: (line: LoadLine) => line.srv_cpu_s_per_change, sent: (line: LoadLine) => line.iterations?.at(-1)?.received?.total };

/** Rows in which something is sent; the others have no floor. */
const FLOORED: readonly Floored[] = [
  {
    scenario: "all proxies initialised",
    run: "plain",
    mode: "init",
    cpu: (line) => line.srv_cpu_until_init_s,
    sent: (line) => line.received?.total,
  },
  { scenario: "route change", run: "plain", mode: "route-change", ...change },
  { scenario: "route change, VHDS", run: "vhds", mode: "route-change", ...change },
  { scenario: "endpoint change", run: "plain", mode: "endpoint-change", ...change },
  { scenario: "change for 10 of 500", run: "plain", mode: "noop-change", ...change },
];

/** What a server that only sends bytes needs for those that ours sent, to as many clients. */
export async function floors(client: LoadClient, ours: ReadonlyMap<RunName, Run>, proxies: number): Promise<readonly Compared[]> {
  const rows: Compared[] = [];
  for (const { scenario, run, mode, cpu, sent } of FLOORED) {
    const line = ours.get(run)?.lines.get(mode);
    const mine = line && cpu(line);
    const all = line && sent(line);
    if (mine === undefined || all === undefined) continue;
    const clients = Math.min(proxies, all.messages);
    const messages = Math.max(1, Math.round(all.messages / clients));
    const bytes = Math.round(all.bytes / clients / messages);
    const args = ["--proxies", String(clients), "--bytes", String(bytes), "--messages", String(messages), "--node", process.execPath];
    const [floor] = await client.run("floor", [...args, "--script", join(client.restartScript, "../floor.mjs"), "--label", mode]);
    if (floor?.server === undefined) continue;
    const { send_cpu_s, accept_cpu_s } = floor.server;
    rows.push(againstFloor(scenario, mine, mode === "init" ? send_cpu_s + accept_cpu_s : send_cpu_s));
  }
  return rows;
}

function againstFloor(scenario: string, ours: number, needed: number): Compared {
  const ratio = ours / needed;
  return {
    scenario: `${scenario}, ours against the floor`,
    unit: "CPU s of the floor",
    ours,
    peer: needed,
    ratio,
    goal: `at most ${FLOOR_TIMES}×`,
    ok: ratio <= FLOOR_TIMES,
  };
}
