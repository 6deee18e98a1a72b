import { resolve } from "node:path";
import { systemClock } from "../base/clock.ts";
import { EdgeError, messageOf } from "../base/errors.ts";
import { createLog } from "../base/log.ts";
import { outliveReaders } from "../base/lost-readers.ts";
import { baseDirOf, readSettings, unknownSettings } from "../settings/read-settings.ts";
import { bannerOf } from "./banner.ts";
import type { ConnectCluster } from "./cluster-link.ts";
import { collectSooner } from "./collect-sooner.ts";
import { type ControlPlane, startControlPlane } from "./control-plane.ts";
import { ISTIO_API_VERSION, VERSION } from "./generate-settings.ts";
import type { SourceMaker } from "./running-sources.ts";

export interface Program {
  readonly name: string;
  readonly about: string;
  /** Sources besides files. */
  readonly sources: readonly SourceMaker[];
  /** How it finds a Kubernetes cluster, where it knows of such. */
  readonly connect?: ConnectCluster;
}

/** Runs a control plane as a process: no parameters, everything from mesh.yaml, the environment and files. Resolves with the exit status. */
export async function runProgram(program: Program, process: NodeJS.Process): Promise<number> {
  const early = answerFlags(program, process.argv.slice(2));
  if (early !== undefined) {
    (early.status === 0 ? process.stdout : process.stderr).write(`${early.text}\n`);
    return early.status;
  }
  outliveReaders(process);
  const { env } = process;
  const { logLevel, logJson } = readSettings(env).settings;
  const log = createLog({ scope: program.name, level: logLevel, json: logJson });
  const baseDir = resolve(baseDirOf(env, process.cwd()));
  try {
    const plane = await startControlPlane({
      program: program.name,
      baseDir,
      env,
      clock: systemClock,
      log,
      sources: program.sources,
      ...(program.connect !== undefined && { connect: program.connect }),
    });
    for (const name of unknownSettings(env)) log.info({ name }, "environment variable is not known and ignored");
    collectSooner();
    const isTerminal = process.stdout.isTTY === true;
    process.stdout.write(`${bannerOf({ program: program.name, baseDir, env, isTerminal, plane }).join("\n")}\n`);
    return await untilStopped(plane, process);
  } catch (error) {
    const hint = error instanceof EdgeError && error.hint !== undefined ? ` (${error.hint})` : "";
    process.stderr.write(`${program.name}: ${messageOf(error)}${hint}\n`);
    return 1;
  }
}

function answerFlags(program: Program, args: readonly string[]): { readonly status: number; readonly text: string } | undefined {
  const [first] = args;
  if (first === undefined) return undefined;
  if (first === "--version") return { status: 0, text: `${program.name} ${VERSION} (Istio API ${ISTIO_API_VERSION})` };
  if (first === "--help" || first === "-h") return { status: 0, text: helpOf(program) };
  return {
    status: 2,
    text: `${program.name} takes no parameters, but was given ${JSON.stringify(first)}; everything is set in etc/istio/mesh.yaml and the environment (see --help)`,
  };
}

function helpOf({ name, about }: Program): string {
  return [
    `${name}: ${about}`,
    "",
    "It takes no parameters. Under the base directory ($ISTIO_HOME, else the working directory) it reads",
    "  etc/istio/mesh.yaml   settings of the mesh and of this process, reloaded when it changes",
    "  etc/istio/conf/       configuration objects, watched; a sub-directory names the namespace of objects that carry none",
    "and keeps its state in var/lib/istio/. docs/settings.md lists the environment variables, docs/mesh.schema.json the fields of mesh.yaml.",
  ].join("\n");
}

function untilStopped(plane: ControlPlane, process: NodeJS.Process): Promise<number> {
  return new Promise((resolvePromise) => {
    let stopping = false;
    const stop = (): void => {
      if (stopping) return;
      stopping = true;
      void plane.stop().then(() => resolvePromise(0));
    };
    process.on("SIGTERM", stop);
    process.on("SIGINT", stop);
    process.on("SIGHUP", plane.rescan);
  });
}
