import { fork } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { measureGeneration } from "./generation.ts";
import { type Emit, jsonLine, type Measurement } from "./measurement.ts";
import { describeMachine, withResults } from "./report.ts";
import { type Extent, FULL, QUICK } from "./shapes.ts";
import { measureStart, warmUp } from "./start.ts";
import { measureStreams } from "./streams.ts";

const REPORT = join(import.meta.dirname, "../BENCHMARKS.md");
const HELP = `usage: node bench/run.ts [--quick] [--only start|generation|streams] [--write]
  --quick   a small scene, one turn each: shows that the bench works, measures nothing worth keeping
  --only    one group of measurements
  --write   put the results into BENCHMARKS.md`;

type Group = "start" | "generation" | "streams";

/** Runs the measurements one after the other: each has the machine to itself. */
const GROUPS: Readonly<Record<Group, (extent: Extent, emit: Emit) => Promise<void>>> = {
  start: measureStart,
  generation: inOwnProcess,
  async streams(extent, emit) {
    for (const classes of extent.classes) await measureStreams({ ...extent.shape, classes }, { changes: extent.changes, emit });
  },
};

async function main(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      quick: { type: "boolean" },
      only: { type: "string" },
      write: { type: "boolean" },
      help: { type: "boolean" },
      "in-process": { type: "boolean" },
    },
  });
  const { quick = false, only, write = false } = values;
  if (values.help === true || (only !== undefined && !(only in GROUPS))) return say(HELP, values.help === true ? 0 : 2);
  if (write && (quick || only !== undefined)) return say("--write wants the whole measurement: no --quick, no --only", 2);
  const extent = quick ? QUICK : FULL;
  const results: Measurement[] = [];
  const emit: Emit = (measurement) => {
    results.push(measurement);
    process.stdout.write(`${jsonLine(measurement)}\n`);
  };
  if (values["in-process"] === true) {
    measureGeneration(generationShape(extent), (measurement) => process.send?.(measurement));
    return 0;
  }
  const machine = describeMachine();
  process.stdout.write(`${JSON.stringify({ bench: "machine", ...machine })}\n`);
  await warmUp();
  for (const [name, measure] of Object.entries(GROUPS)) if (only === undefined || only === name) await measure(extent, emit);
  if (write) await writeFile(REPORT, withResults(await readFile(REPORT, "utf8"), machine, results));
  return 0;
}

/** Generation is measured where neither clients nor earlier measurements share the heap. */
async function inOwnProcess(extent: Extent, emit: Emit): Promise<void> {
  const child = fork(import.meta.filename, ["--in-process", ...(extent === QUICK ? ["--quick"] : [])], { execArgv: ["--expose-gc"] });
  child.on("message", (measurement) => emit(measurement as Measurement));
  const [status] = await once(child, "exit");
  if (status !== 0) throw new Error(`the measurement of generation ended with status ${status}`);
}

const generationShape = ({ shape, classes }: Extent) => ({ ...shape, classes: classes.at(-1) ?? 1 });

function say(text: string, status: number): number {
  (status === 0 ? process.stdout : process.stderr).write(`${text}\n`);
  return status;
}

process.exitCode = await main(process.argv.slice(2));
