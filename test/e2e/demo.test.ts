import { spawn } from "node:child_process";
import { access, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { findEnvoy } from "../../src/agent/find-envoy.ts";
import { eventually } from "../support/wait.ts";

interface Demo {
  readonly lines: () => readonly string[];
  readonly interrupt: () => Promise<number | null>;
  readonly childIds: () => Promise<readonly string[]>;
}

function startDemo(): Demo {
  const bundle = join(import.meta.dirname, "../../dist/istioctl.mjs");
  const child = spawn(process.execPath, [bundle, "demo"], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, ENVOY_PATH: findEnvoy(process.env) },
  });
  const exited = new Promise<number | null>((resolve) => child.once("exit", resolve));
  let text = "";
  child.stdout.on("data", (chunk: Buffer) => {
    text += chunk.toString();
  });
  const interrupt = (): Promise<number | null> => {
    child.kill("SIGINT");
    return exited;
  };
  onTestFinished(async () => void (await interrupt()));
  return {
    lines: () => text.split("\n"),
    interrupt,
    childIds: async () => (await readFile(`/proc/${child.pid}/task/${child.pid}/children`, "utf8")).trim().split(" "),
  };
}

/** Counts of one line: how many of a hundred requests each version answered, through the sidecar and through the gateway. */
function countsOf(line: string): readonly { readonly v1: number; readonly v2: number }[] {
  const count = (part: string, version: string): number => Number(new RegExp(`${version} (\\d+)`).exec(part)?.[1] ?? 0);
  return line.split("through the gateway").map((part) => ({ v1: count(part, "v1"), v2: count(part, "v2") }));
}

const isAlive = (pid: string): Promise<boolean> =>
  access(`/proc/${pid}`).then(
    () => true,
    () => false,
  );

describe("istioctl demo", () => {
  it("shows counts that move when the file it names is edited, and cleans up when it is interrupted", async () => {
    const demo = startDemo();
    const counted = (): readonly string[] => demo.lines().filter((line) => line.startsWith("through the sidecar"));
    await eventually("counts are shown", () => counted().length > 0);
    for (const { v1, v2 } of countsOf(counted()[0] ?? "")) {
      expect(v1 + v2).toBe(100);
      expect(v1).toBeGreaterThan(65);
    }

    const routes =
      demo
        .lines()
        .find((line) => line.trim().endsWith("/routes.yaml"))
        ?.trim() ?? "";
    const text = await readFile(routes, "utf8");
    await writeFile(
      routes,
      text.replace("weight: 90", "weight: 1x").replace("weight: 10", "weight: 90").replace("weight: 1x", "weight: 10"),
    );
    await eventually("the counts have moved", () => countsOf(counted().at(-1) ?? "").every(({ v1, v2 }) => v1 < 35 && v2 > 65));

    const envoys = await demo.childIds();
    expect(envoys).toHaveLength(2);
    expect(await demo.interrupt()).toBe(0);
    await expect(access(dirname(dirname(dirname(dirname(routes)))))).rejects.toThrow("ENOENT");
    for (const pid of envoys) expect(await isAlive(pid)).toBe(false);
  });
});
