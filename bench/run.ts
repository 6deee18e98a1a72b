import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { measureGeneration } from "./generation.ts";
import { measureGrowth } from "./growth.ts";
import { type Emit, jsonLine, type Measurement } from "./measurement.ts";
import { comparedLine, comparedTable, comparePeer, FULL_PEER } from "./peer.ts";
import { plot, plotFile } from "./plot.ts";
import { profileSession } from "./profile.ts";
import { describeMachine, withComparison, withGrowth, withProfile, withResults } from "./report.ts";
import { type Extent, FULL, QUICK } from "./shapes.ts";
import { measureSigning } from "./signing.ts";
import { soak, soakDoubts, soakFaults } from "./soak.ts";
import { measureStart, warmUp } from "./start.ts";
import { measureStreams } from "./streams.ts";
import { measureTls } from "./tls.ts";

const REPORT = join(import.meta.dirname, "../BENCHMARKS.md");
const PLOTS = join(import.meta.dirname, "../docs/plots");
const HELP = `usage: node bench/run.ts [--quick] [--only start|generation|streams|tls|signing] [--write]
       node bench/run.ts --peer CMD|none [--write]
       node bench/run.ts --growth [--write]
       node bench/run.ts --profile [--write]
       node bench/run.ts --soak MINUTES
  --quick   a small scene, one turn each: shows that the bench works, measures nothing worth keeping
  --only    one group of measurements
  --write   put the results into BENCHMARKS.md
  --peer    compare with another control plane, driven by the load client of ../shared/tools (needs Go). CMD DIRECTORY PORTBASE serves
            DIRECTORY/config in plaintext on PORTBASE+10 and answers 200 on PORTBASE+80/ready; "none" measures ours alone in the same way
  --growth  how costs grow with the number of services, endpoints, proxies and changes; --write makes pictures of it
  --profile where the processor and the memory go in each kind of work, by folder
  --soak    changes, reconnects, proxies that stop reading and rude clients for so long; says whether memory, handles and results stay level,
            and ends with status 1 if something grows`;

type Group = "start" | "generation" | "streams" | "tls" | "signing";

/** Runs the measurements one after the other: each has the machine to itself. */
const GROUPS: Readonly<Record<Group, (extent: Extent, emit: Emit) => Promise<void>>> = {
  start: measureStart,
  generation: inOwnProcess,
  async streams(extent, emit) {
    const { shape, changes } = extent;
    for (const classes of extent.classes) await measureStreams({ ...shape, classes }, { changes, emit });
    await measureStreams({ ...shape, classes: extent.classes.at(-1) ?? 1, vhds: true }, { changes, emit });
  },
  tls: ({ shape, classes, changes }, emit) => measureTls({ ...shape, classes: classes.at(-1) ?? 1 }, { changes, emit }),
  signing: ({ shape, signing: { seconds, proxies, classes } }, emit) => measureSigning({ ...shape, proxies, classes }, { seconds, emit }),
};

async function main(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      quick: { type: "boolean" },
      only: { type: "string" },
      write: { type: "boolean" },
      peer: { type: "string" },
      soak: { type: "string" },
      growth: { type: "boolean" },
      profile: { type: "boolean" },
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
  if (values.peer !== undefined) return compared(values.peer, write);
  if (values.growth === true) return growth(emit, write);
  if (values.profile === true) {
    await profileSession(generationShape(extent), emit);
    if (write) await writeFile(REPORT, withProfile(await readFile(REPORT, "utf8"), machine, results));
    return 0;
  }
  if (values.soak !== undefined) {
    const samples = await soak({ shape: SOAK_SHAPE, seconds: Number(values.soak) * 60, emit });
    const [faults, doubts] = [soakFaults(samples), soakDoubts(samples)];
    const level = doubts.length === 0 ? "level: nothing stays behind" : `level, but too short to tell of ${doubts.join(", ")}`;
    return say(faults.length === 0 ? level : faults.join("\n"), faults.length === 0 ? 0 : 1);
  }
  for (const [name, measure] of Object.entries(GROUPS)) if (only === undefined || only === name) await measure(extent, emit);
  if (write) await writeFile(REPORT, withResults(await readFile(REPORT, "utf8"), machine, results));
  return 0;
}

async function growth(emit: Emit, write: boolean): Promise<number> {
  const machine = describeMachine();
  const measured: Measurement[] = [];
  const curves = await measureGrowth((one) => {
    measured.push(one);
    emit(one);
  });
  if (!write) return 0;
  await mkdir(PLOTS, { recursive: true });
  for (const curve of curves) await writeFile(join(PLOTS, plotFile(curve)), plot(curve));
  await writeFile(REPORT, withGrowth(await readFile(REPORT, "utf8"), machine, measured));
  return 0;
}

/** Small enough that a minute has many rounds. */
const SOAK_SHAPE = { services: 200, endpoints: 5, virtualServices: 50, destinationRules: 50, namespaces: 10, proxies: 60, classes: 10 };

async function compared(peer: string, write: boolean): Promise<number> {
  const machine = describeMachine();
  const rows = await comparePeer(peer === "none" ? undefined : peer, FULL_PEER, (row) => process.stdout.write(`${comparedLine(row)}\n`));
  if (write) await writeFile(REPORT, withComparison(await readFile(REPORT, "utf8"), machine, comparedTable(rows)));
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
