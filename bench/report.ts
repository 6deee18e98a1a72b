import { cpus, loadavg, totalmem } from "node:os";
import { systemClock } from "../src/base/clock.ts";
import { type Measurement, round } from "./measurement.ts";
import { plotFile } from "./plot.ts";

/** On what and when was measured. `load` is what others did on the machine in the minute before. */
export interface Machine {
  readonly date: string;
  readonly cpu: string;
  readonly cores: number;
  readonly memory_gb: number;
  readonly node: string;
  readonly load: number;
}

/** Where a table stands in the report. */
interface Place {
  readonly begin: string;
  readonly end: string;
}

const RESULTS: Place = { begin: "<!-- results: written by `npm run bench -- --write` -->", end: "<!-- end of results -->" };
const COMPARISON: Place = {
  begin: "<!-- comparison: written by `npm run bench -- --peer CMD --write` -->",
  end: "<!-- end of comparison -->",
};

const OVER_TLS: Place = {
  begin: "<!-- tls: written by `npm run bench -- --tls --peer CMD --write` -->",
  end: "<!-- end of tls -->",
};

const CLUSTER: Place = {
  begin: "<!-- cluster: written by `npm run bench -- --cluster --peer CMD --write` -->",
  end: "<!-- end of cluster -->",
};

const AGENT: Place = { begin: "<!-- agent: written by `node bench/agent.ts --write` -->", end: "<!-- end of agent -->" };

export function describeMachine(): Machine {
  const [cpu] = cpus();
  return {
    date: new Date(systemClock.now()).toISOString().slice(0, 10),
    cpu: cpu?.model.trim() ?? "unknown",
    cores: cpus().length,
    memory_gb: Math.round(totalmem() / 1024 ** 3),
    node: process.version,
    load: round(loadavg()[0] ?? 0),
  };
}

const PROFILE: Place = { begin: "<!-- profile: written by `npm run bench -- --profile --write` -->", end: "<!-- end of profile -->" };
const SOAK: Place = { begin: "<!-- soak: written by `npm run bench -- --soak 30 --write` -->", end: "<!-- end of soak -->" };
const GROWTH: Place = { begin: "<!-- growth: written by `npm run bench -- --growth --write` -->", end: "<!-- end of growth -->" };

/** The report with its table replaced by these results. All else in it is left alone. */
export function withResults(report: string, machine: Machine, results: readonly Measurement[]): string {
  return withTable(report, RESULTS, [measuredOn(machine), "", ...resultTable(results)]);
}

/** The same for the table of the agent. */
export const withAgent = (report: string, machine: Machine, results: readonly Measurement[]): string =>
  withTable(report, AGENT, [measuredOn(machine), "", ...resultTable(results)]);

const resultTable = (results: readonly Measurement[]): readonly string[] => [
  "| measurement | result | limit | how it came about |",
  "| --- | --- | --- | --- |",
  ...results.map(rowOf),
];

/** The same for the table that compares with a peer. */
export const withComparison = (report: string, machine: Machine, table: readonly string[]): string =>
  withTable(report, COMPARISON, [measuredOn(machine), "", ...table]);

/** The same for the table of the comparison over TLS. */
export const withOverTls = (report: string, machine: Machine, table: readonly string[]): string =>
  withTable(report, OVER_TLS, [measuredOn(machine), "", ...table]);

/** The same for the table of a cluster. */
export const withCluster = (report: string, machine: Machine, table: readonly string[]): string =>
  withTable(report, CLUSTER, [measuredOn(machine), "", ...table]);

/** The same for the pictures of how costs grow, each with the power of the size by which it does. */
export function withGrowth(report: string, machine: Machine, curves: readonly Measurement[]): string {
  const rows = curves.map(({ value, limit, details: { axis, cost, error } }) => {
    const [by, what, chance] = [String(axis), String(cost), Number(error)];
    const verdict = limit !== undefined && value - chance > limit ? ": **more than linear**" : "";
    return `| ${what} | ${by} | ${round(value)} ± ${round(chance)}${verdict} | ![${what} by ${by}](docs/plots/${plotFile({ axis: by, cost: what })}) |`;
  });
  return withTable(report, GROWTH, [measuredOn(machine), "", "| cost | by | power | |", "| --- | --- | --- | --- |", ...rows]);
}

/** The same for what develops how in a soak: by so much an hour, with the standard error. */
export function withSoak(report: string, machine: Machine, watched: readonly Measurement[]): string {
  const rows = watched.map(({ bench, value, unit, limit, details: { rounds, seconds, error, first, p50, last, cut, verdict } }) => {
    const [from, middle, to] = [first, p50, last].map((one) => round(Number(one)));
    const growth = `**${round(value)} ± ${round(Number(error))} ${unit}**`;
    return `| ${bench} | ${growth} | ${limit} ${unit} | ${verdict} | minutes ${round(Number(seconds) / 60)}, rounds ${rounds}, first ${from}, p50 ${middle}, last ${to}, cut ${cut} |`;
  });
  const head = ["| what | grows by | level up to | verdict | how it came about |", "| --- | --- | --- | --- | --- |"];
  return withTable(report, SOAK, [measuredOn(machine), "", ...head, ...rows]);
}

/** The same for where time and memory go. */
export function withProfile(report: string, machine: Machine, profiles: readonly Measurement[]): string {
  const rows = profiles.map(({ bench, value, unit, details: { most = "", ...shares } }) => {
    const parts = Object.entries(shares).map(([place, share]) => `${place} ${Math.round(Number(share) * 100)} %`);
    return `| ${bench} | **${round(value)} ${unit}** | ${parts.join(", ")} | ${most} |`;
  });
  const head = ["| work | each | where | functions that take most themselves |", "| --- | --- | --- | --- |"];
  return withTable(report, PROFILE, [measuredOn(machine), "", ...head, ...rows]);
}

const measuredOn = ({ date, cpu, cores, memory_gb, node, load }: Machine): string =>
  `Measured ${date} on ${cores} cores (${cpu}), ${memory_gb} GB, Node ${node}; load before the run ${load}.`;

function withTable(report: string, { begin, end }: Place, lines: readonly string[]): string {
  const [from, to] = [report.indexOf(begin), report.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`the report has no place for ${begin}`);
  return `${report.slice(0, from)}${[begin, "", ...lines, "", ""].join("\n")}${report.slice(to)}`;
}

function rowOf(measurement: Measurement): string {
  const { bench, value, unit, details } = measurement;
  const how = Object.entries(details).map(([name, detail]) => `${name} ${typeof detail === "number" ? round(detail) : detail}`);
  return `| ${bench} | **${round(value)} ${unit}** | ${verdictOn(measurement)} | ${how.join(", ")} |`;
}

function verdictOn({ value, unit, limit, least }: Measurement): string {
  if (limit !== undefined) return `${limit} ${unit}${value <= limit ? "" : ": **missed**"}`;
  return least === undefined ? "" : `at least ${least} ${unit}${value >= least ? "" : ": **missed**"}`;
}
