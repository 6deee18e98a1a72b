import type { Log } from "../base/log.ts";
import type { LoadedMesh, MeshLoad, MeshLoadGood } from "../config/mesh/load-mesh.ts";
import { meshProblemsSentence, meshProblemText } from "../config/mesh/mesh-problems.ts";
import { compareReload, type ReloadChange } from "../config/mesh/reload.ts";
import type { Problem } from "../config/problem.ts";

/** What of mesh.yaml is in force, and what is not and why. */
export interface MeshState {
  readonly current: LoadedMesh;
  /** Why the files on disk are not in force; empty when they are. */
  readonly problems: readonly Problem[];
  /** What is in force and does nothing, or not what it says. */
  readonly warnings: readonly Problem[];
  /** Fields on disk that wait for a restart. */
  readonly waiting: readonly ReloadChange[];
  /** Takes a new reading of the files; gives the configuration when it is good and differs. */
  reload(load: MeshLoad): LoadedMesh | undefined;
}

/** Begins with a configuration that is good; a later one that is not changes nothing, and is told. So is what is accepted and ignored, once. */
export function createMeshState({ config: first, ...begun }: Pick<MeshLoadGood, "config" | "warnings">, log: Log): MeshState {
  let current = first;
  let { warnings } = begun;
  let problems: readonly Problem[] = [];
  let waiting: readonly ReloadChange[] = [];
  const warn = (before: ReadonlySet<string>): void => {
    const texts = warnings.map(meshProblemText).filter((text) => !before.has(text));
    for (const problem of texts) log.warn({ problem }, "mesh.yaml says something that has no effect; the rest of it is in force");
  };
  warn(new Set());
  return {
    get current() {
      return current;
    },
    get warnings() {
      return warnings;
    },
    get problems() {
      return problems;
    },
    get waiting() {
      return waiting;
    },
    reload(load) {
      if (!load.ok) {
        problems = load.problems;
        log.error({ reason: meshProblemsSentence(load.problems) }, "mesh.yaml is wrong; the last good one stays in force");
        return undefined;
      }
      problems = [];
      const before = new Set(warnings.map(meshProblemText));
      warnings = load.warnings;
      warn(before);
      const { changes } = compareReload(first, load.config);
      waiting = changes.filter(({ needsRestart }) => needsRestart);
      for (const { sentence } of compareReload(current, load.config).changes) log.info(sentence);
      current = load.config;
      return current;
    },
  };
}
