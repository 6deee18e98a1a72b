import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { readAgentConfig } from "../../src/agent/agent-config.ts";
import { AGENT_SETTINGS } from "../../src/settings/agent-table.ts";
import { INTERCEPT_VARIABLES } from "../../src/settings/intercept-table.ts";
import { SETTINGS } from "../../src/settings/table.ts";
import { tempDir } from "../support/cleanup.ts";

const DIRECTORY = join(import.meta.dirname, "../../deploy/systemd");
const UNITS = ["istiod", "istiod-vm", "istio-agent"] as const;
const run = promisify(execFile);

/** Settings of a unit, by name; one may stand there many times. */
async function read(unit: string): Promise<ReadonlyMap<string, readonly string[]>> {
  const settings = new Map<string, string[]>();
  for (const line of (await readFile(join(DIRECTORY, `${unit}.service`), "utf8")).split("\n")) {
    const [, name, value] = /^([A-Za-z]+)=(.*)$/.exec(line) ?? [];
    if (name !== undefined && value !== undefined) settings.set(name, [...(settings.get(name) ?? []), value]);
  }
  return settings;
}

const wordsOf = (settings: ReadonlyMap<string, readonly string[]>, name: string): readonly string[] =>
  (settings.get(name) ?? []).flatMap((value) => value.split(/\s+/)).filter((word) => word !== "");

/** Everything below a directory that a unit lets its program write. */
const covers = (directories: readonly string[], path: string): boolean =>
  directories.some((directory) => path === directory || path.startsWith(`${directory}/`));

describe("systemd units", () => {
  for (const unit of UNITS)
    it(`${unit} runs the program of its name under /, without privileges, and is started again`, async () => {
      const settings = await read(unit);
      expect(settings.get("ExecStart")).toEqual([`/usr/bin/${unit}`]);
      expect(existsSync(join(import.meta.dirname, "../../bin", unit))).toBe(true);
      expect(wordsOf(settings, "Environment")).toEqual(["ISTIO_HOME=/"]);
      expect(settings.get("Restart")).toEqual(["always"]);
      expect(settings.get("KillMode")).toEqual(["mixed"]);
      for (const name of ["NoNewPrivileges", "PrivateDevices", "PrivateTmp", "RestrictSUIDSGID", "LockPersonality"])
        expect([name, settings.get(name)]).toEqual([name, ["yes"]]);
      expect(settings.get("ProtectSystem")).toEqual(["strict"]);
      // V8 would not start.
      expect(settings.has("MemoryDenyWriteExecute")).toBe(false);
    });

  it("let the control plane write where it writes", async () => {
    const settings = await read("istiod");
    const writable = [
      ...wordsOf(settings, "ReadWritePaths"),
      ...wordsOf(settings, "StateDirectory").map((name) => `/var/lib/${name}`),
      ...wordsOf(settings, "RuntimeDirectory").map((name) => `/var/run/${name}`),
    ];
    for (const path of ["/var/lib/istio/debug.token", "/var/lib/istio/last-good", "/etc/cacerts/ca-key.pem", "/var/run/istiod/istiod.sock"])
      expect([path, covers(writable, path)]).toEqual([path, true]);
    expect(wordsOf(settings, "ConfigurationDirectory")).toContain("cacerts");
    expect(wordsOf(settings, "CapabilityBoundingSet")).toEqual([]);
  });

  it("let the agent write where it writes, as the user that interception lets through", async () => {
    const settings = await read("istio-agent");
    const host = { baseDir: "/", type: "sidecar", hostname: "vm", interfaces: [], version: "" } as const;
    const { paths } = await readAgentConfig({ ...host, env: { OUTPUT_CERTS: "etc/certs" } });
    const writable = wordsOf(settings, "ReadWritePaths");
    for (const path of [paths.work, paths.xdsSocket, paths.sdsSocket, paths.lastGood, paths.certificates ?? ""])
      expect([path, covers(writable, path)]).toEqual([path, true]);
    const [made = "", owned = "", ...more] = settings.get("ExecStartPre") ?? [];
    for (const path of [paths.work, paths.sdsSocket, paths.lastGood, paths.certificates ?? "", "/var/run/secrets/tokens/istio-token"])
      for (const command of [made, owned]) expect([path, covers(command.split(" ").slice(1), path)]).toEqual([path, true]);
    expect(more).toEqual(["+/usr/bin/istio-agent iptables"]);
    const user = INTERCEPT_VARIABLES.ENVOY_USER.default;
    expect(settings.get("User")).toEqual([user]);
    expect(await readFile(join(DIRECTORY, "istio-agent.sysusers.conf"), "utf8")).toMatch(new RegExp(`^u ${user} 1337 `, "m"));
    for (const file of settings.get("EnvironmentFile") ?? []) expect(file).toMatch(/^-\/var\/lib\/istio\/envoy\/(sidecar|cluster)\.env$/);
  });

  it("wait for the end as long as it may take", async () => {
    const seconds = async (unit: string): Promise<number> => Number((await read(unit)).get("TimeoutStopSec")?.[0]);
    expect(await seconds("istiod")).toBeGreaterThan(10);
    expect(AGENT_SETTINGS.exitOnZero.about).toContain("at most ten minutes");
    expect(await seconds("istio-agent")).toBeGreaterThan(600);
    expect(SETTINGS.home.env).toBe("ISTIO_HOME");
  });

  it("are what systemd takes", async (context) => {
    const known = await run("systemd-analyze", ["--version"]).catch(() => undefined);
    if (known === undefined) return context.skip("systemd-analyze is not installed");
    const directory = await tempDir();
    for (const unit of UNITS) {
      // The programs are not installed where this runs, which is not what is judged.
      const text = (await readFile(join(DIRECTORY, `${unit}.service`), "utf8")).replaceAll(/\/usr\/bin\/istio[-a-z]*/g, "/bin/true");
      await writeFile(join(directory, `${unit}.service`), text);
    }
    const files = UNITS.map((unit) => join(directory, `${unit}.service`));
    const { stderr } = await run("systemd-analyze", ["verify", "--recursive-errors=no", ...files]);
    expect(stderr.split("\n").filter((line) => UNITS.some((unit) => line.includes(`${unit}.service`)))).toEqual([]);
  });
});
