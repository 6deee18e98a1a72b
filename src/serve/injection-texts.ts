import { join } from "node:path";
import { type ReadInjection, readInjection } from "../inject/read-injection.ts";
import { followPemFiles, type PemFiles, readPemFiles } from "../pki/pem-files.ts";
import type { ClusterInjection } from "./cluster-link.ts";
import type { ControlPlaneOptions } from "./control-plane.ts";

/** Where Istio has its injector's ConfigMap mounted, below the base directory. */
const DIRECTORY = "var/lib/istio/inject";
const FILES = ["config", "values"] as const;

/** The configuration of injection that is in force. */
export interface FollowedTexts {
  readonly current: ReadInjection;
  /** Why what is written is not in force. */
  readonly fault: string | undefined;
  stop(): void;
}

/**
 * Reads the files of the injector where they are there, else its ConfigMap in the cluster, both again as they change, else the built-in defaults hold. A
 * change that is wrong leaves the last good in force.
 */
export async function followInjectionTexts(
  { baseDir, clock, log }: Pick<ControlPlaneOptions, "baseDir" | "clock" | "log">,
  inCluster: ClusterInjection | undefined,
): Promise<FollowedTexts> {
  const directory = join(baseDir, DIRECTORY);
  let fault: string | undefined;
  let current = defaults();
  let files = await readPemFiles(directory, FILES);
  const take = (): void => {
    const read = readInjection(files.texts.size > 0 ? textsOf(files) : (inCluster?.current ?? {}));
    fault = "faults" in read ? read.faults.join("; ") : files.unreadable[0];
    if ("faults" in read) log.error({ reason: fault }, "the configuration of injection is wrong; the last good one stays in force");
    else current = read;
  };
  const changed = (): void => {
    take();
    if (fault === undefined) log.info({ templates: [...current.templates.keys()] }, "a new configuration of injection is in force");
  };
  take();
  inCluster?.follow(changed);
  const stop = followPemFiles({
    directory,
    names: FILES,
    clock,
    since: files,
    changed(next) {
      files = next;
      changed();
    },
  });
  return {
    get current() {
      return current;
    },
    get fault() {
      return fault;
    },
    stop,
  };
}

function defaults(): ReadInjection {
  const read = readInjection({});
  if ("faults" in read) throw new Error(`the built-in configuration of injection is wrong: ${read.faults.join("; ")}`);
  return read;
}

function textsOf({ texts }: PemFiles): Parameters<typeof readInjection>[0] {
  const [config, values] = FILES.map((name) => texts.get(name)?.reveal());
  return { ...(config !== undefined && { config }), ...(values !== undefined && { values }) };
}
