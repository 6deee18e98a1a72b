import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { findIptables as findWorking } from "../../src/agent/iptables/find-iptables.ts";
import { applyInterception, removeInterception } from "../../src/agent/iptables/intercept.ts";
import { createRunTool } from "../../src/agent/iptables/run-tool.ts";
import { ruleCases } from "../iptables/rule-cases.ts";
import { tempDir } from "../support/cleanup.ts";
import { findIptables } from "../support/iptables.ts";
import { startIstiod } from "../support/istiod.ts";
import { hostsImpossible, type MeshHost, runAsProxy, startHosts } from "../support/netns.ts";
import { type RunningProxy, startProxy } from "../support/proxy.ts";
import { relaySocket } from "../support/relay.ts";

const run = promisify(execFile);
const impossible = hostsImpossible();
if (impossible !== undefined) console.warn(`istio-agent iptables is not tested: ${impossible}`);

const environment = (): NodeJS.ProcessEnv => {
  const found = findIptables();
  return { ...process.env, ...(typeof found === "string" ? {} : found) };
};

/** All rules in force on a host, and the routes that go with them, without counters and comments. */
async function stateOf({ enter }: MeshHost): Promise<string> {
  const tool = createRunTool(environment(), enter);
  const parts = await Promise.all([
    ...["iptables", "ip6tables"].flatMap((name) =>
      ["", "-nft", "-legacy"].map(async (variant) => (await tool(`${name}${variant}-save`, [])).stdout),
    ),
    ...["-4 rule", "-6 rule", "-4 route show table 133", "-6 route show table 133", "-6 address show dev lo"].map(
      async (words) => (await tool("ip", words.split(" "))).stdout,
    ),
  ]);
  return parts
    .join("\n")
    .replaceAll(/^#.*\n/gm, "")
    .replaceAll(/\[\d+:\d+\]/g, "");
}

/** Whose connection a server saw, when a program of the host that is the proxy's user called it. */
const callAsProxy = (host: MeshHost, url: string): Promise<string> =>
  runAsProxy(host, `fetch(${JSON.stringify(url)}).then((r) => r.text()).then((t) => process.stdout.write(t))`);

interface World {
  readonly client: MeshHost;
  readonly web: MeshHost;
  readonly proxies: Readonly<Record<"client" | "web", RunningProxy>>;
}

/** Two hosts, each with its Envoy and its rules; services there are none, so everything passes through both Envoys to where it was meant to go. */
async function startWorld(mode: "REDIRECT" | "TPROXY", ...flags: readonly string[]): Promise<World> {
  const { client, web } = await startHosts(["client", "web"], { ipv6: true, flags: ["-m", mode, "--dual-stack", ...flags] });
  const istiod = await startIstiod({ files: {}, env: { ISTIO_DUAL_STACK: "true" } });
  const socket = await relaySocket(istiod.grpcPort);
  const start = (host: MeshHost): Promise<RunningProxy> =>
    startProxy({
      xdsPort: socket,
      name: host.name,
      address: host.address,
      interception: mode,
      host,
      metadata: { INSTANCE_IPS: `${host.address},${host.address6}`, INTERCEPTION_MODE: mode },
    });
  const proxies = { client: await start(client), web: await start(web) };
  for (const bind of ["0.0.0.0", "::"])
    for (const port of [8080, 8081, 8082]) await web.ask("http", { name: `${bind} ${port}`, port, bind });
  return { client, web, proxies };
}

const passed = (proxy: RunningProxy): Promise<number> => proxy.stat("cluster.PassthroughCluster.upstream_cx_total");

describe.skipIf(impossible !== undefined)("istio-agent iptables", () => {
  it.each(["nft", "legacy"])("makes rules that iptables (%s) takes, prints back the same, and removes without a trace", async (binary) => {
    const { host } = await startHosts(["host"], { flags: null });
    const before = await stateOf(host);
    const deps = { run: createRunTool(environment(), host.enter), families: [4, 6] as const, binary };
    const found = await findWorking(deps.run, 4, binary);
    if (typeof found === "string") return console.warn(`rules of ${binary} are not tested: ${found}`);
    for (const { name, options } of ruleCases()) {
      expect(await applyInterception(options, deps), name).toBe(true);
      expect(await applyInterception(options, deps), `${name}, again`).toBe(false);
    }
    for (const { options } of ruleCases()) await removeInterception(options, deps);
    const cleaned = (text: string): string => text.replaceAll(/^(\*\w+|:\w+ ACCEPT|COMMIT) ?\n/gm, "");
    expect(cleaned(await stateOf(host))).toBe(cleaned(before));
  });

  it("leaves no routes of transparent mode behind where that is given up", async () => {
    const { host } = await startHosts(["host"], { ipv6: true, flags: null });
    await host.iptables("--dual-stack", "-m", "TPROXY");
    expect(await stateOf(host)).toMatch(/fwmark 0x539 lookup 133/);
    await host.iptables("--dual-stack");
    const state = await stateOf(host);
    expect(state).not.toMatch(/fwmark|local default/);
    expect(state, "the address that Envoy calls from").toContain("::6/128");
  });

  it("is what the doctor looks for", async () => {
    const { host } = await startHosts(["host"], { flags: null });
    const [command = "", ...words] = [...host.enter, process.execPath, join(import.meta.dirname, "../../dist/istio-agent.mjs"), "doctor"];
    const env = { ...environment(), ISTIO_HOME: await tempDir() };
    const doctor = async (): Promise<string> =>
      run(command, words, { env }).then(
        ({ stdout }) => stdout,
        ({ stdout }) => String(stdout),
      );
    expect(await doctor()).toMatch(/failed {2}iptables: no rules are in force.*\n +fix: run "istio-agent iptables" as root/);
    await host.iptables();
    expect(await doctor()).toMatch(/ok {4}iptables: rules are in force/);
  });

  it("sends what it should through Envoy, in both families, and nothing else, until it is cleaned up", async () => {
    const { client, web, proxies } = await startWorld("REDIRECT", "-d", "8081", "-o", "8082");
    const call = (address: string, port: number) => client.ask("call", { address, port, host: "web.example.com" });
    const last = async (port: number) => (await web.ask("hits", { port })).at(-1)?.from;

    for (const [address, from] of [
      [web.address, "127.0.0.6"],
      [web.address6, "::6"],
    ] as const) {
      const before = await passed(proxies.client);
      expect((await call(address, 8080)).status).toBe(200);
      expect(await last(8080)).toBe(from);
      expect(await passed(proxies.client)).toBe(before + 1);
    }
    const through = await passed(proxies.client);
    await call(web.address, 8081);
    expect(await last(8081)).toBe(client.address);
    expect(await passed(proxies.client)).toBe(through + 1);
    await call(web.address6, 8082);
    expect(await last(8082)).toBe("::6");
    expect(await passed(proxies.client)).toBe(through + 1);

    // What the proxy's user calls is not sent back to the proxy, or a call would never end.
    expect(await callAsProxy(client, `http://${web.address}:8080/`)).toBe("0.0.0.0 8080");
    expect(await callAsProxy(client, `http://[${web.address6}]:8080/`)).toBe(":: 8080");
    expect(await passed(proxies.client)).toBe(through + 1);

    // Programs of one host talk past Envoy; what Envoy sends to its own host, because a program called its own service, comes in through Envoy.
    expect((await web.ask("call", { address: web.address, port: 8080, host: "web.example.com" })).status).toBe(200);
    expect(await last(8080)).toBe(web.address);
    expect(await callAsProxy(web, `http://${web.address}:8080/`)).toBe("0.0.0.0 8080");
    expect(await last(8080)).toBe("127.0.0.6");

    const state = await stateOf(web);
    expect(await web.iptables("--dual-stack", "-d", "8081", "-o", "8082")).toBe("The rules were in force already.\n");
    expect(await stateOf(web)).toBe(state);

    expect(await web.iptables("clean")).toBe("The rules are removed.\n");
    expect(await client.iptables("--cleanup-only")).toBe("The rules are removed.\n");
    expect(await stateOf(web)).not.toMatch(/ISTIO|REDIRECT|::6/);
    await call(web.address, 8080);
    expect(await last(8080)).toBe(client.address);
    expect(await web.iptables("clean")).toBe("There were no rules to remove.\n");
    await expect(web.iptables("--run-validation", "--skip-rule-apply")).rejects.toMatchObject({ code: 126 });
  });

  it("keeps the caller's address in transparent mode", async () => {
    const { client, web, proxies } = await startWorld("TPROXY", "-d", "8081");
    for (const [address, from] of [
      [web.address, client.address],
      [web.address6, client.address6],
    ] as const) {
      const answer = await client.ask("call", { address, port: 8080, host: "web.example.com" });
      expect(answer.status).toBe(200);
      expect((await web.ask("hits", { port: 8080 })).at(-1)?.from).toBe(from);
    }
    const through = (): Promise<number> => proxies.web.stat("cluster.InboundPassthroughCluster.upstream_cx_total");
    expect(await through()).toBe(2);

    // A port that is left alone is so for others; what Envoy sends to its own host, a program's call of its own service, comes in through Envoy all the same.
    await client.ask("call", { address: web.address, port: 8081, host: "web.example.com" });
    expect(await through()).toBe(2);
    expect(await callAsProxy(web, `http://${web.address}:8081/`)).toBe("0.0.0.0 8081");
    expect(await callAsProxy(web, `http://[${web.address6}]:8081/`)).toBe(":: 8081");
    expect(await through()).toBe(4);
    await web.ask("call", { address: web.address, port: 8081, host: "web.example.com" });
    expect(await through()).toBe(4);
  });
});
