import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { clusterImpossible } from "../test/cluster/start-cluster.ts";
import { FULL_CLUSTER, measureCluster, QUICK_CLUSTER } from "./cluster.ts";
import { measureGeneration } from "./generation.ts";
import { FULL_GROWTH, growthFaults, measureGrowth, QUICK_GROWTH } from "./growth.ts";
import { type Emit, jsonLine, type Measurement } from "./measurement.ts";
import { comparedLine, comparedTable, comparePeer, FULL_PEER, QUICK_PEER } from "./peer.ts";
import { compareOverTls, overTlsLine, overTlsTable } from "./peer-tls.ts";
import { plot, plotFile } from "./plot.ts";
import { profileSession } from "./profile.ts";
import { describeMachine, withCluster, withComparison, withGrowth, withOverTls, withProfile, withResults, withSoak } from "./report.ts";
import { measureRestart } from "./restart.ts";
import { type Extent, FULL, QUICK } from "./shapes.ts";
import { measureSigning } from "./signing.ts";
import { soak, soakDoubts, soakFaults } from "./soak.ts";
import { measureFirstProxy, measureStart, warmUp } from "./start.ts";
import { measureStreams } from "./streams.ts";
import { measureTls } from "./tls.ts";

const REPORT = join(import.meta.dirname, "../BENCHMARKS.md");
const PLOTS = join(import.meta.dirname, "../docs/plots");
const HELP = `usage: node bench/run.ts [--quick] [--only start|generation|streams|large|restart|tls|signing] [--write]
       node bench/run.ts --peer CMD|none [--quick] [--write]
       node bench/run.ts --cluster [--quick] [--peer CMD] [--write]
       node bench/run.ts --tls [--quick] [--peer CMD] [--write]
       node bench/run.ts --growth [--quick] [--write]
       node bench/run.ts --profile [--quick] [--write]
       node bench/run.ts --soak MINUTES [--write]
  --quick   a small scene, one turn each: shows that the bench works, measures nothing worth keeping
  --only    one group of measurements
  --write   put the results into BENCHMARKS.md
  --peer    compare with another control plane, driven by the load client of ../shared/tools (needs Go). CMD DIRECTORY PORTBASE serves
            DIRECTORY/config in plaintext on PORTBASE+10 and answers 200 on PORTBASE+80/ready; "none" measures ours alone in the same way. What the client says is told on stderr as it comes
  --tls     the same over TLS with a token for each workload, beside ours in plaintext. CMD also serves over TLS on PORTBASE+12, with its root in
            DIRECTORY/root-cert.pem, and takes NAMESPACE:ACCOUNT for a token
  --cluster the same beside a real API server (needs \`node tools/setup.mjs cluster\`): CMD reads the cluster of DIRECTORY/kubeconfig
  --growth  how costs grow with the number of services, endpoints, proxies and changes a second; --write makes pictures of it. Ends with status 1 if one
            grows faster than linearly
  --profile where the processor and the memory go in each kind of work, by folder
  --soak    changes, reconnects, proxies that stop reading or hardly read, and rude clients for so long; says whether memory, handles and results stay level,
            and ends with status 1 if something grows`;

type Group = "start" | "generation" | "streams" | "large" | "restart" | "tls" | "signing";

/** Runs the measurements one after the other: each has the machine to itself. */
const GROUPS: Readonly<Record<Group, (extent: Extent, emit: Emit) => Promise<void>>> = {
  async start(extent, emit) {
    await measureStart(extent, emit);
    await measureFirstProxy(extent, emit);
  },
  generation: inOwnProcess,
  async streams(extent, emit) {
    const { shape, changes } = extent;
    // The server begins with compiled code: the client, whose costs are held against the server's, has to be compiled first.
    await measureStreams({ ...shape, classes: 1 }, { changes: 1, emit: () => {} });
    for (const classes of extent.classes) await measureStreams({ ...shape, classes }, { changes, emit });
    await measureStreams({ ...shape, classes: extent.classes.at(-1) ?? 1, vhds: true }, { changes, emit });
  },
  async large({ large, changes, churn }, emit) {
    await measureStreams(large, { changes, churn, emit });
    await measureStreams({ ...large, vhds: true }, { changes, emit });
  },
  restart: ({ restarted: { shape, restarts } }, emit) => measureRestart(shape, { restarts, emit }),
  tls: ({ shape, classes, changes }, emit) => measureTls({ ...shape, classes: classes.at(-1) ?? 1 }, { changes, emit }),
  signing: ({ shape, signing: { proxies, classes, ...how } }, emit) => measureSigning({ ...shape, proxies, classes }, { ...how, emit }),
};

async function main(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      quick: { type: "boolean" },
      only: { type: "string" },
      write: { type: "boolean" },
      peer: { type: "string" },
      cluster: { type: "boolean" },
      tls: { type: "boolean" },
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
  if (values.cluster === true) return inCluster(values.peer === "none" ? undefined : values.peer, { quick, write });
  if (values.tls === true) return comparedOverTls(values.peer === "none" ? undefined : values.peer, { quick, write });
  if (values.peer !== undefined) return compared(values.peer, { quick, write });
  if (values.growth === true) return growth(emit, { quick, write });
  if (values.profile === true) {
    await profileSession(generationShape(extent), { pace: extent.churn, emit });
    if (write) await writeFile(REPORT, withProfile(await readFile(REPORT, "utf8"), machine, results));
    return 0;
  }
  if (values.soak !== undefined) return soaked(Number(values.soak), emit, write);
  for (const [name, measure] of Object.entries(GROUPS)) if (only === undefined || only === name) await measure(extent, emit);
  if (write) await writeFile(REPORT, withResults(await readFile(REPORT, "utf8"), machine, results));
  return 0;
}

async function growth(emit: Emit, { quick, write }: { readonly quick: boolean; readonly write: boolean }): Promise<number> {
  const machine = describeMachine();
  const measured: Measurement[] = [];
  const curves = await measureGrowth(quick ? QUICK_GROWTH : FULL_GROWTH, (one) => {
    measured.push(one);
    emit(one);
  });
  if (write) {
    await mkdir(PLOTS, { recursive: true });
    for (const curve of curves) await writeFile(join(PLOTS, plotFile(curve)), plot(curve));
    await writeFile(REPORT, withGrowth(await readFile(REPORT, "utf8"), machine, measured));
  }
  // What a small scene shows is no growth.
  const faults = quick ? [] : growthFaults(curves);
  return faults.length === 0 ? 0 : say(faults.join("\n"), 1);
}

/** Small enough that a minute has many rounds. */
const SOAK_SHAPE = { services: 200, endpoints: 5, virtualServices: 50, destinationRules: 50, namespaces: 10, proxies: 60, classes: 10 };

async function soaked(minutes: number, emit: Emit, write: boolean): Promise<number> {
  const machine = describeMachine();
  const measured: Measurement[] = [];
  const samples = await soak({
    shape: SOAK_SHAPE,
    seconds: minutes * 60,
    emit(one) {
      measured.push(one);
      emit(one);
    },
  });
  if (write) await writeFile(REPORT, withSoak(await readFile(REPORT, "utf8"), machine, measured));
  const [faults, doubts] = [soakFaults(samples), soakDoubts(samples)];
  const level = doubts.length === 0 ? "level: nothing stays behind" : `level, but too short to tell of ${doubts.join(", ")}`;
  return say(faults.length === 0 ? level : faults.join("\n"), faults.length === 0 ? 0 : 1);
}

async function compared(peer: string, { quick, write }: { readonly quick: boolean; readonly write: boolean }): Promise<number> {
  const machine = describeMachine();
  const rows = await comparePeer(peer === "none" ? undefined : peer, quick ? QUICK_PEER : FULL_PEER, (row) =>
    process.stdout.write(`${comparedLine(row)}\n`),
  );
  if (write) await writeFile(REPORT, withComparison(await readFile(REPORT, "utf8"), machine, comparedTable(rows)));
  return 0;
}

async function comparedOverTls(
  peer: string | undefined,
  { quick, write }: { readonly quick: boolean; readonly write: boolean },
): Promise<number> {
  const machine = describeMachine();
  const rows = await compareOverTls(peer, quick ? QUICK_PEER : FULL_PEER, (row) => process.stdout.write(`${overTlsLine(row)}\n`));
  if (write) await writeFile(REPORT, withOverTls(await readFile(REPORT, "utf8"), machine, overTlsTable(rows)));
  return 0;
}

async function inCluster(
  peer: string | undefined,
  { quick, write }: { readonly quick: boolean; readonly write: boolean },
): Promise<number> {
  const impossible = clusterImpossible();
  if (impossible !== undefined) return say(impossible, 1);
  const machine = describeMachine();
  const rows = await measureCluster(peer, quick ? QUICK_CLUSTER : FULL_CLUSTER, (row) =>
    process.stdout.write(`${comparedLine(row, "cluster")}\n`),
  );
  if (write) await writeFile(REPORT, withCluster(await readFile(REPORT, "utf8"), machine, comparedTable(rows)));
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
