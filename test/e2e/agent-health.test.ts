import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { startAgentProcess } from "../support/agent.ts";
import { meshBelieving, tokenFor } from "../support/agent-mesh.ts";
import { type Call, tally } from "../support/calls.ts";
import { tempDir } from "../support/cleanup.ts";
import { httpEcho } from "../support/echo.ts";
import { rootOf } from "../support/identity.ts";
import { type Istiod, startIstiod } from "../support/istiod.ts";
import { freePort } from "../support/ports.ts";
import { listening, startProxy } from "../support/proxy.ts";
import { createIssuer } from "../support/tokens.ts";
import { eventually, says } from "../support/wait.ts";

const MACHINE = "127.0.0.31";
const HOST = "cart.shop.test";
const run = promisify(execFile);
const ISTIOCTL = join(import.meta.dirname, "../../dist/istioctl.mjs");

interface Ports {
  readonly service: number;
  readonly ingress: number;
  readonly app: number;
  readonly other: number;
}

/** A service of two members: one that registers itself and is probed, and one that is always there. */
const config = ({ service, ingress, app, other }: Ports): string => `
apiVersion: networking.istio.io/v1
kind: WorkloadGroup
metadata: {name: carts, namespace: shop}
spec:
  metadata: {labels: {app: cart}}
  template: {serviceAccount: cart, ports: {http: ${ingress}}}
  probe:
    periodSeconds: 1
    failureThreshold: 2
    httpGet: {host: 127.0.0.1, port: ${app}, path: /healthz, httpHeaders: [{name: x-probe, value: "yes"}]}
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: cart, namespace: shop}
spec:
  hosts: [${HOST}]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: ${service}, name: http, protocol: HTTP}]
  workloadSelector: {labels: {app: cart}}
---
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: other, namespace: shop}
spec: {address: 127.0.0.1, ports: {http: ${other}}, labels: {app: cart}}
---
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {name: cart, namespace: shop}
spec:
  workloadSelector: {labels: {app: cart}}
  ingress: [{port: {number: ${ingress}, name: http, protocol: HTTP}, bind: ${MACHINE}, defaultEndpoint: "127.0.0.1:${app}"}]
  egress: [{hosts: ["~/*"]}]
`;

/** Writes a join bundle, unpacks it, and gives the probe that it brings to the machine. */
async function bundleFor({ home, httpPort, securePort }: Istiod, machine: string): Promise<unknown> {
  const env = { ...process.env, ISTIO_HOME: home, HTTP_ADDR: `127.0.0.1:${httpPort}`, SECURE_GRPC_ADDR: `127.0.0.1:${securePort}` };
  const words = ["entry", "configure", "--name", "carts", "-n", "shop", "--autoregister", "--internalIP", MACHINE, "-o", "join.tar"];
  await run(process.execPath, [ISTIOCTL, "x", "workload", ...words], { env, cwd: home });
  await run("tar", ["-xf", join(home, "join.tar"), "-C", machine]);
  const text = /^PROXY_CONFIG='(.*)'$/m.exec(await readFile(join(machine, "var/lib/istio/envoy/cluster.env"), "utf8"))?.[1] ?? "{}";
  return (JSON.parse(text) as { readonly readinessProbe?: unknown }).readinessProbe;
}

it("a workload that its agent finds ill is not called until it is well again", async () => {
  let status = 200;
  const app = await httpEcho("app", { status: () => status });
  const other = await httpEcho("other");
  const ports = { service: await freePort(), ingress: await freePort(MACHINE), app: app.port, other: other.port };
  const istiod = await startIstiod({ files: { "conf/cart.yaml": config(ports) } });
  const home = await tempDir();
  const readinessProbe = await bundleFor(istiod, home);
  const agent = await startAgentProcess({
    name: "vm-1",
    serviceAccount: "cart",
    address: MACHINE,
    istiod: `127.0.0.1:${istiod.securePort}`,
    labels: { app: "cart" },
    proxyConfig: { readinessProbe },
    home,
  });
  const client = await startProxy({ xdsPort: istiod.grpcPort, name: "web", address: "127.0.0.32" });
  await listening(ports.service);
  const target: Call = { port: ports.service, host: HOST };
  const called = async (): Promise<string> =>
    Object.keys(await tally(40, target))
      .sort()
      .join();

  await eventually("it is well and called", async () => (await called()) === "app,other");
  const probes = app.hits.filter(({ url }) => url === "/healthz");
  expect(probes[0]?.headers).toMatchObject({ "x-probe": "yes", "user-agent": "istio-probe/1.0" });

  status = 503;
  await eventually("it is not called", async () => (await called()) === "other");
  await says(agent, "it answers with status 503");
  expect(await (await istiod.debug("/debug/configz?type=WorkloadEntry")).text()).toContain("unhealthy");
  const metrics = async (): Promise<string> => (await fetch(`http://127.0.0.1:${agent.statusPort}/metrics`)).text();
  expect(await metrics()).toContain("istio_agent_workload_healthy 0");

  // Who starts anew is told again how it is.
  await istiod.stop();
  await istiod.start();
  expect(await called()).toBe("other");

  status = 200;
  await eventually("it is called again", async () => (await called()) === "app,other");
  expect(await metrics()).toContain("istio_agent_workload_healthy 1");
  await client.assertNothingRejected();
});

/** A WorkloadEntry that somebody wrote. */
const written = (ingress: number): string => `---
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: machine, namespace: shop, annotations: {proxy.istio.io/health-checks-enabled: "true"}}
spec: {address: ${MACHINE}, ports: {http: ${ingress}}, serviceAccount: cart, labels: {app: cart}}
`;

it("so is one whose WorkloadEntry somebody wrote; nobody else speaks for it", async () => {
  let status = 200;
  const app = await httpEcho("app", { status: () => status });
  const other = await httpEcho("other");
  const ports = { service: await freePort(), ingress: await freePort(MACHINE), app: app.port, other: other.port };
  const issuer = createIssuer("https://id.example.com");
  const istiod = await startIstiod({
    files: { "mesh.yaml": meshBelieving(issuer), "conf/cart.yaml": config(ports) + written(ports.ingress) },
  });
  const shared = {
    istiod: `127.0.0.1:${istiod.securePort}`,
    root: await rootOf(istiod),
    env: { ISTIO_META_WORKLOAD_ENTRY: "machine" },
    proxyConfig: { readinessProbe: { periodSeconds: 1, failureThreshold: 2, httpGet: { host: "127.0.0.1", port: app.port } } },
  };
  const client = await startProxy({ xdsPort: istiod.grpcPort, name: "web", address: "127.0.0.32" });
  await listening(ports.service);
  const called = async (): Promise<string> =>
    Object.keys(await tally(40, { port: ports.service, host: HOST }))
      .sort()
      .join();
  expect(await called()).toBe("other");

  const stranger = await startAgentProcess({
    ...shared,
    name: "web",
    serviceAccount: "web",
    address: "127.0.0.33",
    token: tokenFor(issuer, "web"),
    wait: false,
  });
  await eventually("the stranger is refused", () => stranger.log().includes("is of another service account than the caller"));
  expect(await called()).toBe("other");

  const labels = { app: "cart" };
  await startAgentProcess({ ...shared, name: "vm", address: MACHINE, serviceAccount: "cart", labels, token: tokenFor(issuer, "cart") });
  await eventually("it is well and called", async () => (await called()) === "app,other");
  await istiod.stop();
  await istiod.start();
  expect(await called()).toBe("app,other");
  status = 503;
  await eventually("it is not called", async () => (await called()) === "other");
  status = 200;
  await eventually("it is called again", async () => (await called()) === "app,other");
  await client.assertNothingRejected();
});
