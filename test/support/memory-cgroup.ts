import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { messageOf } from "../../src/base/errors.ts";
import { eventually } from "./wait.ts";

/** A group of processes with a limit of memory: who of them goes beyond it is killed. */
export interface MemoryCgroup {
  /** Where processes are put into it: its `cgroup.procs`. */
  readonly dir: string;
  /** What may be used from now on. Fails where that is less than what cannot be given back. */
  limit(bytes: number): void;
}

const ROOT = "/sys/fs/cgroup";
/** Where the first version has memory, and the second everything. */
const LAYOUTS = [
  { root: join(ROOT, "memory"), sign: "memory.limit_in_bytes", limit: "memory.limit_in_bytes", noSwap: "memory.swappiness" },
  { root: ROOT, sign: "cgroup.subtree_control", limit: "memory.max", noSwap: "memory.swap.max" },
] as const;

type Layout = (typeof LAYOUTS)[number];

/** Why no limit of memory can be set on this machine; undefined where one can. */
export function whyNoMemoryCgroup(): string | undefined {
  const layout = layoutHere();
  if (layout === undefined) return "there is no cgroup with memory that processes could be put into";
  try {
    const dir = join(layout.root, `istio-ts-try-${process.pid}`);
    mkdirSync(dir);
    rmdirSync(dir);
    return undefined;
  } catch (error) {
    return `a cgroup cannot be made: ${messageOf(error)}`;
  }
}

/** Makes a group that goes with the test. Ask for it before the processes that are to be in it: they end first then. */
export function memoryCgroup(): MemoryCgroup {
  const layout = layoutHere();
  if (layout === undefined) throw new Error("there is no cgroup with memory");
  const dir = join(layout.root, `istio-ts-${process.pid}`);
  mkdirSync(dir);
  if (existsSync(join(dir, layout.noSwap))) writeFileSync(join(dir, layout.noSwap), "0");
  onTestFinished(async () => {
    await eventually("the group is empty", () => readFileSync(join(dir, "cgroup.procs"), "utf8") === "");
    rmdirSync(dir);
  });
  return {
    dir,
    limit: (bytes) => writeFileSync(join(dir, layout.limit), String(bytes)),
  };
}

function layoutHere(): Layout | undefined {
  return LAYOUTS.find(({ root, sign }) => {
    const path = join(root, sign);
    return existsSync(path) && (sign !== "cgroup.subtree_control" || readFileSync(path, "utf8").includes("memory"));
  });
}
