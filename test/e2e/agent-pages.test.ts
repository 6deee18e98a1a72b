import { Resolver } from "node:dns/promises";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { connect } from "node:tls";
import { describe, expect, it, onTestFinished } from "vitest";
import { startAgentProcess } from "../support/agent.ts";
import { CART_HOST, meshBelieving, tokenFor } from "../support/agent-mesh.ts";
import { askCertificate, rootOf } from "../support/identity.ts";
import { startIstiod } from "../support/istiod.ts";
import { freePort } from "../support/ports.ts";
import { tlsCall } from "../support/tls-call.ts";
import { createIssuer } from "../support/tokens.ts";
import { eventually } from "../support/wait.ts";

const ADDRESS = "127.0.0.10";

/** A service with an address and one without, whose workloads are answers themselves. */
const CONFIG = (port: number): string => `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: cart, namespace: shop}
spec:
  hosts: [${CART_HOST}]
  addresses: [240.0.0.7]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: ${port}, name: http, protocol: HTTP}]
  endpoints: [{address: 127.0.0.1}]
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: wild, namespace: shop}
spec: {hosts: ["*.wild.example.com"], addresses: [240.0.0.8], resolution: NONE, ports: [{number: ${port}, name: http, protocol: HTTP}]}
`;

/** An application with a page for probes and one with metrics. */
async function startApp(): Promise<{ readonly port: number; healthy: boolean }> {
  const state = { port: 0, healthy: true };
  const server = createServer((request, response) => {
    if (request.url === "/metrics") return void response.writeHead(200, { "content-type": "text/plain" }).end("app_orders_total 7\n");
    response.writeHead(state.healthy ? 200 : 503).end(`at ${request.url}`);
  });
  state.port = await freePort(ADDRESS);
  await new Promise<void>((resolve) => server.listen(state.port, ADDRESS, resolve));
  const metrics = createServer((_, response) => void response.end("app_orders_total 7\n"));
  await new Promise<void>((resolve) => metrics.listen(state.port, "127.0.0.1", resolve));
  onTestFinished(() => void [server, metrics].map((one) => one.close()));
  return state;
}

describe("what an agent answers beside Envoy", () => {
  it("probes the application, joins metrics, and knows the names of the mesh, also without a control plane", async () => {
    const issuer = createIssuer("https://id.example.com");
    const servicePort = await freePort();
    const istiod = await startIstiod({ files: { "mesh.yaml": meshBelieving(issuer), "conf/cart.yaml": CONFIG(servicePort) } });
    const app = await startApp();
    const dnsPort = await freePort();
    const agent = await startAgentProcess({
      name: "web",
      address: ADDRESS,
      serviceAccount: "web",
      istiod: `127.0.0.1:${istiod.securePort}`,
      root: await rootOf(istiod),
      token: tokenFor(issuer, "web"),
      env: {
        ISTIO_META_DNS_CAPTURE: "true",
        DNS_PROXY_ADDR: `localhost:${dnsPort}`,
        ISTIO_KUBE_APP_PROBERS: JSON.stringify({
          "/app-health/app/readyz": { httpGet: { path: "/ready", port: app.port } },
          "/app-health/app/livez": { tcpSocket: { port: app.port } },
        }),
        ISTIO_PROMETHEUS_ANNOTATIONS: JSON.stringify({ scrape: "true", port: String(app.port) }),
      },
    });
    const page = async (path: string): Promise<string> => {
      const answer = await fetch(`http://127.0.0.1:${agent.statusPort}${path}`);
      return `${answer.status} ${await answer.text()}`;
    };

    expect(await page("/app-health/app/readyz")).toBe("200 at /ready");
    expect(await page("/app-health/app/livez")).toBe("200 ");
    expect(await page("/app-health/other/livez")).toMatch(/^404/);
    app.healthy = false;
    expect(await page("/app-health/app/readyz")).toBe("503 at /ready");

    // A workload is ready without a certificate of its own: nothing here shows one.
    const metrics = await eventually("the certificate has come", async () => {
      const text = await page("/stats/prometheus");
      return text.includes("istio_agent_cert_expiry_seconds{") && text;
    });
    expect(metrics).toMatch(/^200 /);
    expect(metrics).toMatch(/\nenvoy_server_live\{.*\} 1\n/);
    expect(metrics).toMatch(/\nistio_agent_cert_expiry_seconds\{resource_name="default"\} \d+/);
    expect(metrics).toMatch(/\napp_orders_total 7\n$/);
    expect(metrics).not.toMatch(/envoy_istio_/);
    const counted = async (name: string): Promise<number> => {
      const text = await page("/stats/prometheus");
      return Number(
        text
          .split("\n")
          .find((line) => line.startsWith(`istio_agent_${name} `))
          ?.slice(name.length + 13),
      );
    };
    expect(await counted("startup_duration_seconds")).toBeGreaterThan(0);
    expect(await counted("xds_proxy_requests")).toBeGreaterThan(4);
    expect(await counted("xds_proxy_responses")).toBeGreaterThan(2);
    expect(await counted('num_outgoing_requests{request_type="csr"}')).toBe(1);
    expect(await counted('num_failed_outgoing_requests{request_type="csr"}')).toBe(0);
    expect(await counted('num_outgoing_retries{request_type="csr"}')).toBe(0);
    expect(await counted('outgoing_latency{request_type="csr"}')).toBeGreaterThan(0);
    expect(await counted('envoy_connection_terminations{type="cancelled"}')).toBe(0);
    expect(await counted("istiod_connection_failures")).toBe(0);
    expect(await counted("wasm_config_conversion_duration_count")).toBe(0);

    const resolver = new Resolver({ timeout: 10_000, tries: 1 });
    resolver.setServers([`127.0.0.1:${dnsPort}`]);
    // Names come on a way of their own, after Envoy's configuration perhaps.
    await eventually("names have come", async () => (await page("/debug/ndsz")).includes(CART_HOST));
    expect(await resolver.resolve4(CART_HOST)).toEqual(["240.0.0.7"]);
    expect(await resolver.resolve4("any.wild.example.com")).toEqual(["240.0.0.8"]);
    await expect(resolver.resolve6(CART_HOST)).rejects.toMatchObject({ code: "ENODATA" });
    const forwarded = await counted("dns_upstream_requests_total");
    await resolver.resolve4("www.outside.invalid").catch(() => {});
    expect(await counted("dns_upstream_requests_total")).toBe(forwarded + 1);
    expect(await counted("dns_upstream_request_duration_seconds_count")).toBe(forwarded + 1);
    expect(await counted('dns_upstream_request_duration_seconds_bucket{le="+Inf"}')).toBe(forwarded + 1);
    await istiod.write("conf/cart.yaml", CONFIG(servicePort).replace("240.0.0.7", "240.0.0.9"));
    await eventually("the new address is known", async () => (await resolver.resolve4(CART_HOST))[0] === "240.0.0.9");

    const kept = join(agent.home, "var/lib/istio/envoy/last-good/names.pb");
    await eventually("it is on disk", async () => (await readFile(kept)).includes("240.0.0.9"));
    process.kill(await agent.envoyPid(), "SIGKILL");
    await eventually("Envoy's end is counted", async () => (await counted('envoy_connection_terminations{type="cancelled"}')) > 0);
    await agent.ready();
    await istiod.stop();
    await eventually("the end of the stream is counted", async () => (await counted('istiod_connection_terminations{type="error"}')) > 0);
    await eventually("calls that nobody answers are counted", async () => (await counted("istiod_connection_failures")) > 1);
    await agent.stop("SIGKILL");
    agent.start();
    await agent.ready();
    await eventually("names are served from disk", async () => (await resolver.resolve4(CART_HOST))[0] === "240.0.0.9");
  });

  it("shows metrics to callers with a certificate of the mesh alone, where that is asked for", async () => {
    const issuer = createIssuer("https://id.example.com");
    const istiod = await startIstiod({ files: { "mesh.yaml": meshBelieving(issuer) } });
    const [envoyPort, mergedPort] = [await freePort(), await freePort()];
    const agent = await startAgentProcess({
      name: "web",
      address: ADDRESS,
      serviceAccount: "web",
      istiod: `127.0.0.1:${istiod.securePort}`,
      root: await rootOf(istiod),
      token: tokenFor(issuer, "web"),
      env: {
        ENVOY_SECURE_METRICS_PORT: String(envoyPort),
        ENVOY_SECURE_MERGED_METRICS_PORT: String(mergedPort),
        EXIT_ON_ZERO_ACTIVE_CONNECTIONS: "true",
        MINIMUM_DRAIN_DURATION: "100ms",
      },
    });
    const { key, chain } = await askCertificate(istiod, { token: tokenFor(issuer, "prometheus") });
    const scrape = (port: number, path: string, shown: { readonly key?: string; readonly cert?: string }) =>
      tlsCall({ port, path, name: "metrics", ...shown });
    const known = { key, cert: chain.join("") };
    const envoys = await eventually("Envoy has its certificate", () =>
      scrape(envoyPort, "/stats/prometheus", known).catch(() => undefined),
    );
    expect([envoys.shown, envoys.body.includes("envoy_server_live")]).toEqual(["URI:spiffe://cluster.local/ns/shop/sa/web", true]);
    const merged = await eventually("so has the other listener", () => scrape(mergedPort, "/metrics", known).catch(() => undefined));
    expect([merged.body.includes("envoy_server_live"), merged.body.includes("istio_agent_scrapes_total")]).toEqual([true, true]);
    expect((await scrape(mergedPort, "/quitquitquit", known)).status).toBe(404);
    for (const port of [envoyPort, mergedPort]) {
      await expect(scrape(port, "/stats/prometheus", {})).rejects.toThrow();
      await expect(fetch(`http://127.0.0.1:${port}/stats/prometheus`)).rejects.toThrow();
    }
    // Who scrapes is no client: the end does not wait for connections that stay open.
    for (const port of [envoyPort, mergedPort]) {
      const socket = connect({ port, host: "127.0.0.1", rejectUnauthorized: false, ...known });
      socket.on("error", () => {});
      onTestFinished(() => void socket.destroy());
      await once(socket, "secureConnect");
    }
    let status: number | null | undefined;
    void agent.stop().then((code) => (status = code));
    await eventually("the agent has ended", () => status === 0);
  });
});
