import type { LoadLine } from "./xdsload.ts";

/** What one contestant was measured at. Lines are by mode; `start` is what the bench saw itself. */
export interface Run {
  readonly lines: ReadonlyMap<string, LoadLine>;
  readonly start: { readonly readyMs: number; readonly rssMb: number };
}

/** What is measured: a control plane as it is, with virtual-host discovery, after a restart, asked for certificates; the same of the peer where it can. */
export type RunName = "plain" | "vhds" | "restart" | "csr";

/** What is compared, and what is wanted of it. */
export interface Goal {
  readonly scenario: string;
  readonly unit: "ms" | "CPU s" | "MB" | "proxies" | "CSR/s";
  /** The peer's number is to be so many times ours; ours so many times the peer's where more is better. */
  readonly times?: number;
  /** Ours is to reach this, more being better; with `times` too, as `limit`. */
  readonly least?: number;
  /** Ours is to stay at or under this; where there is `times` too, on the machine it was set on, and on others by that ratio. */
  readonly limit?: number;
  /** Over TLS, where a connection takes more of both: in place of the limit the peer's number, over TLS as well, may be so many times ours. */
  readonly timesOverTls?: number;
}

/** One number that is compared. */
export interface Figure extends Goal {
  /** Which run of ours it is read from; the peer's comes from the run of that name, or the plain one. */
  readonly run: RunName;
  read(run: Run): number | undefined;
}

const MB = 1_000_000;

const line = (mode: string, read: (line: LoadLine) => number | undefined) => (run: Run) => {
  const found = run.lines.get(mode);
  return found === undefined ? undefined : read(found);
};
const changeMs = (mode: string) => line(mode, ({ median_last_ms }) => median_last_ms);
const changeCpu = (mode: string) => line(mode, ({ srv_cpu_s_per_change }) => srv_cpu_s_per_change);
const changeMb = (mode: string) => line(mode, ({ iterations = [] }) => (iterations.at(-1)?.received?.total?.bytes ?? 0) / MB);

/** The rows that are to be reached, in the order in which they are told. */
export const FIGURES: readonly Figure[] = [
  { scenario: "start to ready", unit: "ms", run: "plain", read: ({ start }) => start.readyMs, limit: 1_000 },
  { scenario: "memory when ready", unit: "MB", run: "plain", read: ({ start }) => start.rssMb, limit: 120 },
  { scenario: "all proxies initialised", unit: "ms", run: "plain", read: line("init", (one) => one.init_total_ms), times: 8 },
  { scenario: "all proxies initialised", unit: "CPU s", run: "plain", read: line("init", (one) => one.srv_cpu_until_init_s), times: 10 },
  { scenario: "all proxies initialised, peak", unit: "MB", run: "plain", read: line("init", (one) => one.srv_rss_phase_peak_mb), times: 4 },
  { scenario: "route change to the last proxy", unit: "ms", run: "plain", read: changeMs("route-change"), times: 5 },
  { scenario: "route change", unit: "CPU s", run: "plain", read: changeCpu("route-change"), times: 6 },
  { scenario: "route change, sent", unit: "MB", run: "plain", read: changeMb("route-change") },
  // 250 MB where the peer takes 770 to 1,326, so by their middle.
  {
    scenario: "memory after the route changes",
    unit: "MB",
    run: "plain",
    read: line("route-change", (one) => one.srv_rss_mb),
    limit: 250,
    timesOverTls: 4.2,
  },
  { scenario: "route change to the last proxy, VHDS", unit: "ms", run: "vhds", read: changeMs("route-change"), times: 15 },
  { scenario: "route change, VHDS", unit: "CPU s", run: "vhds", read: changeCpu("route-change"), times: 15 },
  { scenario: "route change, VHDS, sent", unit: "MB", run: "vhds", read: changeMb("route-change") },
  { scenario: "endpoint change to the last proxy", unit: "ms", run: "plain", read: changeMs("endpoint-change"), times: 5 },
  { scenario: "endpoint change", unit: "CPU s", run: "plain", read: changeCpu("endpoint-change"), times: 15 },
  { scenario: "change for 10 of 500 to the last of them", unit: "ms", run: "plain", read: changeMs("noop-change"), times: 5 },
  { scenario: "change for 10 of 500", unit: "CPU s", run: "plain", read: changeCpu("noop-change"), times: 15 },
  { scenario: "change for 10 of 500, others touched", unit: "proxies", run: "plain", read: line("noop-change", othersTouched), limit: 0 },
  { scenario: "change without effect", unit: "CPU s", run: "plain", read: changeCpu("null-change"), times: 25 },
  { scenario: "change without effect, sent", unit: "MB", run: "plain", read: changeMb("null-change"), limit: 0 },
  { scenario: "5 changes a second for 10 s, lag p50", unit: "ms", run: "plain", read: line("churn", ({ lag }) => lag?.p50_ms), times: 10 },
  { scenario: "5 changes a second for 10 s, to drain", unit: "ms", run: "plain", read: line("churn", (one) => one.drain_ms), limit: 1_000 },
  { scenario: "5 seconds of nothing", unit: "CPU s", run: "plain", read: line("idle", (one) => one.srv_cpu_s) },
  { scenario: "restart, sent again", unit: "MB", run: "restart", read: line("restart", resentMb), limit: 0 },
  {
    scenario: "restart, last proxy served",
    unit: "ms",
    run: "restart",
    read: line("restart", ({ served }) => served?.last_ms),
    limit: 2_000,
  },
  // 0.5 CPU s where the peer takes 11.4.
  { scenario: "restart", unit: "CPU s", run: "restart", read: line("restart", (one) => one.srv_cpu_s), limit: 0.5, times: 22.8 },
  // 2,500 where the peer signs 1,046.
  { scenario: "certificates signed", unit: "CSR/s", run: "csr", read: line("csr", (one) => one.csr_per_s), least: 2_500, times: 2.39 },
  { scenario: "certificate signed, p99", unit: "ms", run: "csr", read: line("csr", ({ latency }) => latency?.p99_ms), limit: 10 },
];

function othersTouched({ iterations = [] }: LoadLine): number {
  return Math.max(0, ...iterations.map(({ others_touched }) => others_touched ?? 0));
}

function resentMb({ resent }: LoadLine): number {
  return (resent?.total?.bytes ?? 0) / MB;
}

/** A figure of both, and whether ours is where it should be. */
export interface Compared {
  readonly scenario: string;
  readonly unit: Goal["unit"] | "CPU s of the floor" | "ms of the floor";
  readonly ours: number;
  readonly peer?: number;
  readonly ratio?: number;
  readonly goal?: string;
  readonly ok?: boolean;
}

export function compare(figure: Figure, ours: ReadonlyMap<RunName, Run>, peer: ReadonlyMap<RunName, Run>): Compared | undefined {
  const own = ours.get(figure.run);
  const mine = own && figure.read(own);
  if (mine === undefined) return undefined;
  const other = peer.get(figure.run === "vhds" ? "plain" : figure.run);
  return compared(figure, mine, other && figure.read(other));
}

/** Two numbers against what is wanted of them. */
export function compared({ scenario, unit, times, limit, least }: Goal, mine: number, theirs: number | undefined): Compared {
  const ratio = theirs === undefined ? undefined : timesBetter(mine, theirs, least !== undefined);
  const goals = [
    ...(limit === undefined ? [] : [`at most ${limit} ${unit}`]),
    ...(least === undefined ? [] : [`at least ${least} ${unit}`]),
    ...(times === undefined ? [] : [`${times}×`]),
  ];
  const verdicts = [
    ...(limit === undefined ? [] : [mine <= limit]),
    ...(least === undefined ? [] : [mine >= least]),
    ...(times === undefined || ratio === undefined ? [] : [ratio >= times]),
  ];
  return {
    scenario,
    unit,
    ours: mine,
    ...(theirs !== undefined && { peer: theirs }),
    ...(ratio !== undefined && { ratio }),
    ...(goals.length > 0 && { goal: goals.join(" or ") }),
    ...(verdicts.length > 0 && { ok: verdicts.includes(true) }),
  };
}

function timesBetter(mine: number, theirs: number, moreIsBetter: boolean): number | undefined {
  const [large, small] = moreIsBetter ? [mine, theirs] : [theirs, mine];
  return small === 0 ? undefined : large / small;
}
