import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import type { DebugPage } from "../../src/debug/api-types.ts";
import { startControlPlane } from "../../src/serve/control-plane.ts";
import { tempDir } from "../support/cleanup.ts";

/** Cells of the rows whose first cell is one name in code style. */
const rows = readFileSync(join(import.meta.dirname, "../../docs/observing.md"), "utf8")
  .split("\n")
  .filter((line) => /^\| `[\w/-]+` \|/.test(line))
  .map((line) => line.split("|").map((cell) => cell.trim()));
const told = rows.map(([, name = "", kind = ""]) => ({ name: name.replaceAll("`", ""), kind }));

/** A whole control plane, asked over HTTP. `PILOT_ENVOY_FILTER_STATS` is there for the one metric that is off by default. */
async function asker(): Promise<(path: string) => Promise<Response>> {
  const env = {
    GRPC_ADDR: "",
    SECURE_GRPC_ADDR: "127.0.0.1:0",
    HTTPS_ADDR: "",
    MONITORING_ADDR: "",
    HTTP_ADDR: "127.0.0.1:0",
    PILOT_ENVOY_FILTER_STATS: "true",
  };
  const options = { program: "istiod", baseDir: await tempDir(), env, clock: systemClock, log: silentLog, sources: [] };
  const plane = await startControlPlane(options);
  onTestFinished(() => plane.stop());
  const headers = { authorization: `Bearer ${plane.debugToken}` };
  return (path) => fetch(`http://127.0.0.1:${plane.ports.http?.port}${path}`, { headers });
}

describe("docs/observing.md", () => {
  it("tells of every metric with its type, and of no other", async () => {
    const text = await (await (await asker())("/metrics")).text();
    const served = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = "", kind = ""]) => ({ name, kind }));
    const ours = served.filter(({ name }) => !/^(process|nodejs)_/.test(name));
    const byName = (a: { readonly name: string }, b: { readonly name: string }): number => (a.name < b.name ? -1 : 1);
    expect(told.filter(({ name }) => !name.startsWith("/")).sort(byName)).toEqual(ours.sort(byName));
  });

  it("tells of every page, as /debug does, and of no other", async () => {
    const index = (await (await (await asker())("/debug")).json()) as readonly DebugPage[];
    const pages = told.map(({ name }) => name).filter((name) => name.startsWith("/"));
    expect(pages.sort()).toEqual([...index.map(({ path }) => path), "/debug", "/debug/list"].sort());
  });
});
