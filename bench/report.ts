import { cpus, loadavg, totalmem } from "node:os";
import { systemClock } from "../src/base/clock.ts";
import { type Measurement, round } from "./measurement.ts";

/** On what and when was measured. `load` is what others did on the machine in the minute before. */
export interface Machine {
  readonly date: string;
  readonly cpu: string;
  readonly cores: number;
  readonly memory_gb: number;
  readonly node: string;
  readonly load: number;
}

const BEGIN = "<!-- results: written by `npm run bench -- --write` -->";
const END = "<!-- end of results -->";

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

/** The report with its table replaced by these results. All else in it is left alone. */
export function withResults(report: string, machine: Machine, results: readonly Measurement[]): string {
  const [begin, end] = [report.indexOf(BEGIN), report.indexOf(END)];
  if (begin < 0 || end < begin) throw new Error("the report has no place for results");
  const { date, cpu, cores, memory_gb, node, load } = machine;
  const lines = [
    BEGIN,
    "",
    `Measured ${date} on ${cores} cores (${cpu}), ${memory_gb} GB, Node ${node}; load before the run ${load}.`,
    "",
    "| measurement | result | limit | how it came about |",
    "| --- | --- | --- | --- |",
    ...results.map(rowOf),
    "",
    "",
  ];
  return `${report.slice(0, begin)}${lines.join("\n")}${report.slice(end)}`;
}

function rowOf({ bench, value, unit, limit, details }: Measurement): string {
  const verdict = limit === undefined ? "" : `${limit} ${unit}${value <= limit ? "" : ": **missed**"}`;
  const how = Object.entries(details).map(([name, detail]) => `${name} ${typeof detail === "number" ? round(detail) : detail}`);
  return `| ${bench} | **${round(value)} ${unit}** | ${verdict} | ${how.join(", ")} |`;
}
