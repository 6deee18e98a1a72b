import { writeFile } from "node:fs/promises";
import { createServer, type ServerResponse } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { bytesField, textField } from "../../src/wire/field-writer.ts";
import { openGrpcChannel } from "../../src/wire/grpc-channel.ts";
import { SOTW_METHOD } from "../../src/wire/grpc-server.ts";
import { CLUSTER_TYPE } from "../../src/wire/type-urls.ts";
import { type AgentRunOptions, startAgentProcess } from "../support/agent.ts";
import { meshBelieving, startAgentMesh, tokenFor } from "../support/agent-mesh.ts";
import { call } from "../support/calls.ts";
import { tempDir } from "../support/cleanup.ts";
import { httpEcho } from "../support/echo.ts";
import { rootOf } from "../support/identity.ts";
import { startIstiod } from "../support/istiod.ts";
import { freePort } from "../support/ports.ts";
import { listening } from "../support/proxy.ts";
import { createIssuer } from "../support/tokens.ts";
import { eventually, says } from "../support/wait.ts";

/** A server that answers when it is told to. */
async function slowServer(): Promise<{ readonly port: number; readonly waiting: ServerResponse[] }> {
  const waiting: ServerResponse[] = [];
  const server = createServer((_, response) => void waiting.push(response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return { port: (server.address() as AddressInfo).port, waiting };
}

/** An agent whose Envoy takes requests for a slow server. */
async function slowWorkload(
  env: Readonly<Record<string, string>>,
  proxyConfig: Readonly<Record<string, unknown>>,
  more: Partial<AgentRunOptions> = {},
) {
  const issuer = createIssuer("https://id.example.com");
  const server = await slowServer();
  const port = await freePort();
  const sidecar = `
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {name: slow, namespace: shop}
spec:
  ingress: [{port: {number: ${port}, name: http, protocol: HTTP}, bind: 127.0.0.1, defaultEndpoint: "127.0.0.1:${server.port}"}]
`;
  const istiod = await startIstiod({ files: { "mesh.yaml": meshBelieving(issuer), "conf/slow.yaml": sidecar } });
  const agent = await startAgentProcess({
    name: "slow",
    address: "127.0.0.12",
    istiod: `127.0.0.1:${istiod.securePort}`,
    root: await rootOf(istiod),
    token: tokenFor(issuer, "default"),
    env,
    proxyConfig,
    ...more,
  });
  await listening(port);
  return { agent, server, target: { port, host: "slow" } };
}

/** Whether nobody takes connections there. */
const isRefused = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => resolve(false));
    socket.once("error", (error: NodeJS.ErrnoException) => resolve(error.code === "ECONNREFUSED")).once("connect", () => socket.destroy());
  });

/** What a process wrote last may come after word of its end. */
describe("the end of an agent", () => {
  it("lets requests finish within the drain time, and takes no new connections", async () => {
    const { agent, server, target } = await slowWorkload({}, { terminationDrainDuration: "20s", drainDuration: "1s" });
    const answer = call(target);
    await eventually("the request has arrived", () => server.waiting.length === 1);
    const envoy = await agent.envoyPid();
    const ended = agent.stop("SIGTERM");
    await eventually("the agent is not ready any more", async () => {
      const answered = await fetch(`http://127.0.0.1:${agent.readinessPort}/healthz/ready`).catch(() => undefined);
      return answered?.ok !== true;
    });
    await eventually("no new connection is taken", () => isRefused(target.port));
    expect(await agent.admin("/ready"), "Envoy is there, and drains").toBe("DRAINING\n");
    server.waiting[0]?.end("late");
    expect((await answer).body).toBe("late");
    agent.kill("SIGTERM");
    expect(await ended).toBe(0);
    expect(() => process.kill(envoy, 0)).toThrow();
  });

  it("comes when the drain time is over, whoever still waits for an answer", async () => {
    const { agent, server, target } = await slowWorkload({}, { terminationDrainDuration: "2s", drainDuration: "60s" });
    const answer = call(target).then(
      () => "answered",
      () => "cut off",
    );
    await eventually("the request has arrived", () => server.waiting.length === 1);
    const started = systemClock.monotonic();
    expect(await agent.stop("SIGTERM")).toBe(0);
    const tookMs = systemClock.monotonic() - started;
    expect(tookMs).toBeGreaterThan(1_900);
    // Well below the drain time of the listeners, and of what else is waited for; well above what a busy machine needs to end two processes.
    expect(tookMs).toBeLessThan(15_000);
    expect(await answer).toBe("cut off");
  });

  it("comes as soon as the last connection is gone, where asked", async () => {
    const env = { EXIT_ON_ZERO_ACTIVE_CONNECTIONS: "true", MINIMUM_DRAIN_DURATION: "100ms" };
    const { agent, server, target } = await slowWorkload(env, {});
    const answer = call(target);
    await eventually("the request has arrived", () => server.waiting.length === 1);
    let status: number | null | undefined;
    void agent.stop("SIGTERM").then((code) => (status = code));
    await eventually(
      "Envoy drains",
      async () => (await agent.admin("/listeners?format=json")).length > 0 && (await agent.stat("server.live")) === 0,
    );
    expect(status).toBeUndefined();
    server.waiting[0]?.end("late");
    expect((await answer).body).toBe("late");
    await eventually("the agent has ended", () => status === 0);
  });

  it("can be asked for over HTTP, from this machine, and waits for nobody then", async () => {
    const { agent } = await slowWorkload({}, { terminationDrainDuration: "600s" });
    const ended = agent.ended();
    expect((await fetch(`http://127.0.0.1:${agent.statusPort}/quitquitquit`, { method: "POST" })).status).toBe(200);
    expect(await ended).toBe(0);
  });

  it("comes at once where it began with /drain, which is when a native sidecar's application has ended", async () => {
    const { agent } = await slowWorkload({}, { terminationDrainDuration: "600s" });
    expect((await fetch(`http://127.0.0.1:${agent.statusPort}/drain`, { method: "POST" })).status).toBe(200);
    expect(await agent.stop("SIGTERM")).toBe(0);
  });
});

describe("an agent that still waits for what it needs", () => {
  it("ends when it is told to, as the first process of a container would not by itself", async () => {
    const env = { WORKLOAD_IDENTITY_SOCKET_FILE: "elsewhere" };
    const agent = await startAgentProcess({ name: "web-1", address: "127.0.0.1", istiod: "127.0.0.1:1", token: "none", env, wait: false });
    await eventually("it waits", () => agent.log().includes("waiting for the SDS server"));
    expect(await agent.stop()).toBe(0);
  });
});

describe("an agent without Envoy", () => {
  it("serves programs that speak xDS themselves, in the variant of old too", async () => {
    const issuer = createIssuer("https://id.example.com");
    const istiod = await startIstiod({ files: { "mesh.yaml": meshBelieving(issuer) } });
    const agent = await startAgentProcess({
      name: "grpc",
      address: "127.0.0.14",
      istiod: `127.0.0.1:${istiod.securePort}`,
      root: await rootOf(istiod),
      token: tokenFor(issuer, "default"),
      env: { DISABLE_ENVOY: "true" },
    });
    const channel = await openGrpcChannel({ to: { path: join(agent.home, "etc/istio/proxy/XDS") }, clock: systemClock });
    onTestFinished(() => channel.close());
    const answer = new Promise<Buffer>((resolve, reject) => {
      const call = channel.open(SOTW_METHOD, {}, { message: resolve, ended: reject });
      const node = Buffer.concat([textField(1, "sidecar~127.0.0.14~grpc.shop~shop.svc.cluster.local")]);
      call.send(Buffer.concat([bytesField(2, node), textField(4, CLUSTER_TYPE)]));
    });
    expect((await answer).includes(CLUSTER_TYPE)).toBe(true);
    expect(await agent.stop()).toBe(0);
  });
});

describe("the Envoy of an agent", () => {
  it("runs as the mesh's ProxyConfig says, the workload's own over it, and a bootstrap of the user's over all", async () => {
    const issuer = createIssuer("https://id.example.com");
    const mesh =
      "defaultConfig: {concurrency: 1, drainDuration: 21s, terminationDrainDuration: 250ms, fileFlushInterval: 3s, tracingServiceName: CANONICAL_NAME_ONLY}\n";
    const istiod = await startIstiod({ files: { "mesh.yaml": meshBelieving(issuer) + mesh } });
    const override = join(await tempDir(), "custom_bootstrap.json");
    await writeFile(override, "stats_flush_interval: 7s\nflags_path: '$(HOST_IP):9411'\n");
    const agent = await startAgentProcess({
      name: "tuned",
      address: "127.0.0.15",
      istiod: `127.0.0.1:${istiod.securePort}`,
      root: await rootOf(istiod),
      token: tokenFor(issuer, "default"),
      env: {
        ISTIO_BOOTSTRAP_OVERRIDE: override,
        HOST_IP: "fd00::7",
        ISTIO_METAJSON_LABELS: JSON.stringify({ "service.istio.io/canonical-name": "tuned-app", app: "old" }),
      },
      proxyConfig: { drainDuration: "22s", terminationDrainDuration: "8s" },
    });
    const { command_line_options: options } = JSON.parse(await agent.admin("/server_info"));
    expect(options).toMatchObject({ concurrency: 1, drain_time: "22s", drain_strategy: "Immediate", file_flush_interval: "3s" });
    const mask = ["stats_flush_interval", "stats_eviction_interval", "flags_path"].map((field) => `bootstrap.${field}`).join();
    const { configs } = JSON.parse(await agent.admin(`/config_dump?resource=&mask=${mask}`));
    expect(JSON.stringify(configs)).toContain('"stats_flush_interval":"7s"');
    expect(JSON.stringify(configs)).toContain('"stats_eviction_interval":"602s"'); // Envoy demands a multiple.
    expect(JSON.stringify(configs)).toContain('"flags_path":"[fd00::7]:9411"');
    const { node } = JSON.parse(await agent.admin("/server_info"));
    expect(node.id).toContain("~127.0.0.15~tuned.shop~");
    expect(node.cluster).toBe("tuned-app");
    expect(node.metadata).not.toHaveProperty("RUN_PROXY_CONFIG");
    const started = systemClock.monotonic();
    expect(await agent.stop()).toBe(0);
    // Istio's own would be five seconds.
    const tookMs = systemClock.monotonic() - started;
    expect(tookMs).toBeGreaterThan(7_500);
    expect(tookMs).toBeLessThan(20_000);
  });

  it("runs as flags say, which may stand before what the proxy is", async () => {
    const flags = [
      "--proxyLogLevel=error,misc:off,rbac:debug",
      "--concurrency",
      "2",
      "--serviceCluster=named",
      "--domain",
      "shop.svc.example.org",
    ];
    const { agent } = await slowWorkload({}, { concurrency: 1 }, { args: ["proxy", ...flags, "sidecar", "--profiling=false"] });
    const { command_line_options: options, node } = JSON.parse(await agent.admin("/server_info"));
    expect(options).toMatchObject({ concurrency: 2, log_level: "error", component_log_level: "misc:off,rbac:debug" });
    expect(node.cluster).toBe("named");
    expect(node.id).toMatch(/~slow\.shop~shop\.svc\.example\.org$/);
  });

  it("runs a bootstrap of the user's own as it is, where ProxyConfig names one", async () => {
    const [admin, port] = [await freePort(), await freePort()];
    const file = join(await tempDir(), "own.yaml");
    const address = (number: number): string => `address: {socket_address: {address: 127.0.0.1, port_value: ${number}}}`;
    const filter = `{name: own, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.direct_response.v3.Config, response: {inline_string: mine}}}`;
    await writeFile(
      file,
      `admin: {${address(admin)}}\nstatic_resources: {listeners: [{name: own, ${address(port)}, filter_chains: [{filters: [${filter}]}]}]}\n`,
    );
    const proxyConfig = { proxyAdminPort: admin, customConfigFile: file };
    const issuer = createIssuer("https://id.example.com");
    const istiod = await startIstiod({ files: { "mesh.yaml": meshBelieving(issuer) } });
    const agent = await startAgentProcess({
      name: "own",
      address: "127.0.0.16",
      istiod: `127.0.0.1:${istiod.securePort}`,
      root: await rootOf(istiod),
      token: tokenFor(issuer, "default"),
      proxyConfig,
      wait: false,
    });
    await listening(port);
    const text = await new Promise<string>((resolve) => {
      connect(port, "127.0.0.1").once("data", (bytes) => resolve(bytes.toString()));
    });
    expect(text).toBe("mine");
    await eventually("the agent is ready", async () => (await fetch(`http://127.0.0.1:${agent.statusPort}/healthz/ready`)).ok);
    // An Envoy that outlives its agent is known by the next one, which ends it.
    await agent.stop("SIGKILL");
    agent.start();
    await says(agent, "an Envoy that outlived its agent is ended");
    await listening(port);
  });

  it("runs without a bootstrap of the user's that cannot be read", async () => {
    const { agent } = await slowWorkload({ ISTIO_BOOTSTRAP_OVERRIDE: "/nowhere/custom_bootstrap.json" }, {});
    await says(agent, "ISTIO_BOOTSTRAP_OVERRIDE cannot be read and is left out");
  });
});

describe("the start of an agent", () => {
  it("goes to the address that answers", async () => {
    const dead = await freePort();
    const mesh = await startAgentMesh({ address: ({ securePort }) => `127.0.0.1:${dead},127.0.0.1:${securePort}` });
    expect((await call(mesh.target)).status).toBe(200);
  });

  it.for([0, 1, 2, 3])("is tried again on other ports where one that a test found was taken (number %s)", async (index) => {
    const taken = (await httpEcho("other")).port;
    let found = 0;
    const { agent } = await slowWorkload({}, {}, { findPort: async () => (found++ === index ? taken : freePort()) });
    expect(found).toBe(8);
    expect(await agent.stat("server.live")).toBe(1);
  });

  it("ends with one sentence where it cannot be", async () => {
    const { agent } = await slowWorkload({}, {});
    const second = await startAgentProcess({ name: "x", address: "127.0.0.1", istiod: "127.0.0.1:1", home: agent.home, wait: false });
    expect(await second.ended()).toBe(1);
    await says(second, "an agent runs here already");
    const ports = { proxyConfig: { statusPort: agent.statusPort } };
    const crowded = await startAgentProcess({ name: "x", address: "127.0.0.1", istiod: "127.0.0.1:1", wait: false, ...ports });
    expect(await crowded.ended()).toBe(1);
    await says(crowded, `port ${agent.statusPort} is taken by another program`);
    const dns = { ISTIO_META_DNS_CAPTURE: "true", DNS_PROXY_ADDR: `127.0.0.1:${await freePort()}` };
    const noEnvoy = { env: { ENVOY_PATH: "/nowhere/envoy", ...dns } };
    const bare = await startAgentProcess({ name: "x", address: "127.0.0.1", istiod: "127.0.0.1:1", wait: false, ...noEnvoy });
    expect(await bare.ended()).toBe(1);
    await says(bare, "/nowhere/envoy, which is not an executable file");
    const misread = await startAgentProcess({ name: "x", address: "127.0.0.1", istiod: "no:such:thing", wait: false });
    expect(await misread.ended()).toBe(1);
    await says(misread, '"no:such:thing" is no address of a control plane');
    expect(misread.log().trim().split("\n")).toHaveLength(1);
  });

  it("without any address is that of a control plane on local files", async () => {
    const [grpc, http] = [await freePort(), await freePort()];
    const addresses = { GRPC_ADDR: `127.0.0.1:${grpc}`, SECURE_GRPC_ADDR: "", HTTP_ADDR: `127.0.0.1:${http}`, MONITORING_ADDR: "" };
    const agent = await startAgentProcess({
      name: "x",
      address: "127.0.0.1",
      istiod: "",
      wait: false,
      env: { ...addresses, PROXY_CONFIG: "" },
    });
    await eventually("it is ready", async () => (await fetch(`http://127.0.0.1:${http}/ready`)).ok);
    await says(agent, "istio-agent");
    expect(await agent.stop()).toBe(0);
  });
});
