import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { findIptables as findWorking } from "../../src/agent/iptables/find-iptables.ts";
import { createRunTool } from "../../src/agent/iptables/run-tool.ts";
import { findIptables } from "../support/iptables.ts";
import { hostsImpossible, type MeshHost, PROXY_USER, startHosts } from "../support/netns.ts";

const run = promisify(execFile);
const impossible = hostsImpossible();
if (impossible !== undefined) console.warn(`validation of interception is not tested: ${impossible}`);

interface Outcome {
  readonly status: number;
  readonly said: string;
  readonly ms: number;
}

/** Runs what injection runs in a pod with CNI, as it is run there: as the proxy's user, without any capability and without iptables. */
async function validate({ enter }: MeshHost, ...flags: readonly string[]): Promise<Outcome> {
  const user = String(PROXY_USER);
  const asProxy = [
    "setpriv",
    "--reuid",
    user,
    "--regid",
    user,
    "--clear-groups",
    "--bounding-set=-all",
    "--inh-caps=-all",
    "--no-new-privs",
  ];
  return agent([...enter, ...asProxy], ...flags);
}

async function agent(before: readonly string[], ...flags: readonly string[]): Promise<Outcome> {
  const [command = "", ...words] = [...before, process.execPath, join(import.meta.dirname, "../../dist/istio-agent.mjs"), "istio-iptables"];
  const began = performance.now();
  const { code, stdout } = await run(command, [...words, "-u", "1337", ...flags, "--run-validation", "--skip-rule-apply"]).then(
    (done) => ({ ...done, code: 0 }),
    (error: { readonly code: number; readonly stdout: string }) => error,
  );
  return { status: code, said: stdout, ms: performance.now() - began };
}

/** Rules as another program makes them: other chains, other order, and some that ours have not. */
const foreign = (family: 4 | 6): string => {
  const [own, pass] = family === 4 ? ["127.0.0.1/32", "127.0.0.6/32"] : ["::1/128", "::6/128"];
  return `*nat
-N ISTIO_REDIRECT
-N ISTIO_IN_REDIRECT
-N ISTIO_OUTPUT
-A ISTIO_REDIRECT -p tcp -j REDIRECT --to-ports 15001
-A ISTIO_IN_REDIRECT -p tcp -j REDIRECT --to-ports 15006
-A OUTPUT -p tcp -j ISTIO_OUTPUT
-A ISTIO_OUTPUT -o lo -s ${pass} -j RETURN
-A ISTIO_OUTPUT -o lo ! -d ${own} -p tcp ! --dport 15008 -m owner --uid-owner 1337 -j ISTIO_IN_REDIRECT
-A ISTIO_OUTPUT -o lo -m owner ! --uid-owner 1337 -j RETURN
-A ISTIO_OUTPUT -m owner --uid-owner 1337 -j RETURN
-A ISTIO_OUTPUT -d ${own} -j RETURN
-A ISTIO_OUTPUT -j ISTIO_REDIRECT
COMMIT
`;
};

async function addForeign({ enter }: MeshHost, families: readonly (4 | 6)[]): Promise<void> {
  const found = findIptables();
  const tool = createRunTool({ ...process.env, ...(typeof found === "string" ? {} : found) }, enter);
  for (const family of families) {
    const working = await findWorking(tool, family);
    if (typeof working === "string") throw new Error(working);
    const { status, stderr } = await tool(working.restore, ["--noflush"], foreign(family));
    expect(status, stderr).toBe(0);
    if (family === 6) await tool("ip", ["-6", "address", "add", "::6/128", "dev", "lo"]);
  }
}

describe.skipIf(impossible !== undefined)("istio-agent iptables --run-validation", () => {
  it("says with status 126 that there are no rules, after the time it may take", async () => {
    const { host } = await startHosts(["host"], { flags: null });
    const { status, said, ms } = await validate(host, "--probe-timeout", "1500ms");
    expect(status).toBe(126);
    expect(said).toBe(
      "The rules are not in force, so this workload is not ready for the mesh: a connection to 127.0.0.6:15002 failed with ECONNREFUSED.\n",
    );
    expect(ms).toBeGreaterThan(1_200);
    expect(ms).toBeLessThan(4_000);
    await host.ask("http", { name: "other", port: 15_002, bind: "0.0.0.0" });
    expect((await validate(host, "--probe-timeout", "300ms")).said).toMatch(/a connection to 127\.0\.0\.6:15002 went elsewhere/);
  });

  it("sees our rules, in both families and modes", async () => {
    const { host } = await startHosts(["host"], { ipv6: true, flags: ["--dual-stack"] });
    expect(await validate(host, "--dual-stack")).toMatchObject({ status: 0, said: "" });
    expect(await validate(host, "--iptables-probe-port", "2345")).toMatchObject({ status: 0 });
    expect(await validate(host, "--inbound-capture-port", "15007", "--probe-timeout", "300ms")).toMatchObject({ status: 126 });
    await host.iptables("-m", "TPROXY", "--dual-stack");
    expect(await validate(host, "-m", "TPROXY", "--dual-stack")).toMatchObject({ status: 0 });
    await host.iptables("clean");
    await host.iptables();
    expect(await validate(host, "--dual-stack", "--probe-timeout", "300ms")).toMatchObject({ status: 126 });
    await host.iptables("clean");
    expect(await validate(host, "-m", "TPROXY", "--probe-timeout", "300ms")).toMatchObject({ status: 126 });
  });

  it("sees rules of others, and waits for those that are about to be made", async () => {
    const { host } = await startHosts(["host"], { ipv6: true, flags: null });
    const waiting = validate(host, "--dual-stack");
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    await addForeign(host, [4, 6]);
    expect(await waiting).toMatchObject({ status: 0, said: "" });
    expect(await agent(host.enter, "--dual-stack")).toMatchObject({ status: 0 });
  });
});
