import type { Clock } from "../base/clock.ts";
import { messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { createSlice } from "../base/slice.ts";
import { objectKey } from "../config/object.ts";
import { formatPath, type Problem } from "../config/problem.ts";
import type { ConfigStore } from "../config/store/store-types.ts";
import { placed } from "../debug/object-origin.ts";
import type { World } from "../generate/world.ts";

/** Tells of objects that are wrong beside each other, or have parts without effect, once each, when they come to be so. */
export interface ProblemReport {
  /** Something was put in force: looks again, as soon as there is time, and gives way to everything else meanwhile. */
  committed(): void;
  /** What was found at the last look, by object. */
  readonly found: ReadonlyMap<string, readonly Problem[]>;
}

/** What is looked at, and who is told. */
export interface ProblemReportOptions {
  readonly world: Pick<World, "engine" | "problems">;
  readonly store: Pick<ConfigStore, "origin" | "problems">;
  readonly clock: Pick<Clock, "monotonic" | "after">;
  readonly log: Log;
  /** A look is over. */
  looked?(): void;
  /** Proxies of before a restart are about to come back: the first look waits until they have. */
  readonly proxiesAwaited?: boolean;
}

/** Proxies are served first; changes that follow each other are looked at together. */
const AFTER_MS = 250;
/** After a start all proxies come at once, and those that were there before are served in little time. */
const FIRST_AFTER_MS = 2_000;
const AFTER_PROXIES_MS = 5_000;

/** Looks at the objects of a store after each commit, and says in the log what is new. */
export function createProblemReport({ world, store, clock, log, looked, proxiesAwaited }: ProblemReportOptions): ProblemReport {
  let said = new Set<string>();
  let found: ReadonlyMap<string, readonly Problem[]> = new Map();
  const problemsBeside = createJudge(world, clock);
  let waiting = false;
  let afterMs = proxiesAwaited === true ? AFTER_PROXIES_MS : FIRST_AFTER_MS;

  const look = async (): Promise<void> => {
    const beside = await problemsBeside();
    const problems = [...beside, ...store.problems().filter(isWithoutEffect)];
    found = Map.groupBy(beside, ({ object }) => objectKey(object));
    for (const problem of problems) if (!said.has(idOf(problem))) tell(problem, store, log);
    said = new Set(problems.map(idOf));
    looked?.();
  };

  let turn: Promise<void> = Promise.resolve();
  return {
    get found() {
      return found;
    },
    committed() {
      if (waiting) return;
      waiting = true;
      clock.after(afterMs, () => {
        waiting = false;
        afterMs = AFTER_MS;
        turn = turn
          .then(look)
          .catch((error: unknown) => log.error({ reason: messageOf(error) }, "objects could not be judged beside each other"));
      });
    },
  };
}

/** Finds what is wrong between objects, in slices. What was found is held, so that the next look costs what changed. */
function createJudge(world: ProblemReportOptions["world"], clock: ProblemReportOptions["clock"]): () => Promise<readonly Problem[]> {
  const [held, walking] = [world.engine.lease("problems"), world.engine.lease("problems, object by object")];
  let walked: readonly string[] | undefined;
  return async () => {
    const slice = createSlice(clock);
    const keys = held.extend(() => world.problems.keys());
    if (keys !== walked) {
      // There may be thousands of new objects: each is judged on its own, before all are asked for at once.
      const steps = world.problems.steps()[Symbol.iterator]();
      while (walking.extend(() => steps.next()).done !== true) {
        const rest = slice();
        if (rest !== undefined) await rest;
      }
      walked = keys;
    }
    for (const _ of held.refresh()) {
      const rest = slice();
      if (rest !== undefined) await rest;
    }
    const problems = held.run(() => {
      world.problems.keys();
      return world.problems.all();
    });
    walking.release();
    return problems;
  };
}

function tell(problem: Problem, store: ProblemReportOptions["store"], log: Log): void {
  const { file, line } = placed(problem, store);
  const at = file === undefined ? {} : { at: line === undefined ? file : `${file}:${line}` };
  log.warn(
    { object: objectKey(problem.object), ...at, problem: `${formatPath(problem.path)}: ${problem.message}` },
    "an object cannot have its full effect; the rest of the configuration is in force",
  );
}

/** What is accepted and does nothing, or not what it says. What only has a newer name works, and is shown on the page. */
const isWithoutEffect = ({ code }: Problem): boolean => code === "field.ineffective" || code === "route.unreachable";

const idOf = ({ object, path, code, message }: Problem): string => `${objectKey(object)} ${formatPath(path)} ${code} ${message}`;
