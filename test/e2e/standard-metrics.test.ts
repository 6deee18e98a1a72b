import { once } from "node:events";
import { connect } from "node:net";
import { isDeepStrictEqual } from "node:util";
import { expect, it } from "vitest";
import type { RunningAgent } from "../support/agent.ts";
import { call } from "../support/calls.ts";
import { grpcCaller } from "../support/grpc-echo.ts";
import { CART, istioSamples, type MeteredMesh, type Sample, startMeteredMesh, total } from "../support/metered-mesh.ts";
import { eventually } from "../support/wait.ts";

const REQUESTS = "istio_requests_total";
const HISTOGRAMS = ["istio_request_duration_milliseconds", "istio_request_bytes", "istio_response_bytes"];

/** What every metric says of the two workloads, whichever side it is from. */
const BOTH = {
  source_principal: "spiffe://cluster.local/ns/shop/sa/web",
  source_workload: "web-v1",
  source_workload_namespace: "shop",
  source_canonical_service: "web",
  source_canonical_revision: "v1",
  source_app: "web",
  source_version: "v1",
  source_cluster: "Kubernetes",
  destination_principal: "spiffe://cluster.local/ns/shop/sa/cart",
  destination_workload: "cart-v2",
  destination_workload_namespace: "shop",
  destination_canonical_service: "cart",
  destination_canonical_revision: "v2",
  destination_app: "cart",
  destination_version: "v2",
  destination_cluster: "Kubernetes",
  destination_service: CART,
  destination_service_name: CART,
  destination_service_namespace: "shop",
  response_flags: "-",
};
const SIDES = {
  client: { ...BOTH, reporter: "source", connection_security_policy: "unknown" },
  server: { ...BOTH, reporter: "destination", connection_security_policy: "mutual_tls" },
} as const;
const EDGE = { source_canonical_service: "edge", source_canonical_revision: "latest", source_app: "edge", source_version: "unknown" };
const NOBODY = {
  source_workload: "unknown",
  source_canonical_service: "unknown",
  source_canonical_revision: "unknown",
  source_app: "unknown",
  source_version: "unknown",
  source_cluster: "unknown",
};
const HTTP = { request_protocol: "http", response_code: "200", grpc_response_status: "" };

const TELEMETRY = `apiVersion: telemetry.istio.io/v1
kind: Telemetry
metadata: {name: cart, namespace: shop}
spec:
  selector: {matchLabels: {app: cart}}
  metrics:
  - overrides:
    - match: {metric: REQUEST_COUNT, mode: SERVER}
      tagOverrides:
        method: {value: "request.method == 'GET' ? 'read' : 'write'"}
        port: {value: string(destination.port)}
        source_workload: {operation: REMOVE}
    - match: {metric: REQUEST_SIZE}
      disabled: true
`;

/** For all workloads of the namespace; the client has no other. */
const REPORTS = `apiVersion: telemetry.istio.io/v1
kind: Telemetry
metadata: {name: all, namespace: shop}
spec: {metrics: [{reportingInterval: 1s}]}
`;

/**
 * All of Istio's standard metrics from real Envoys under real agents. It also holds what upstream calls work in progress: the access logger that counts
 * (envoy.access_loggers.stats), its tags, its shared scope and eviction.
 */
it("a mesh without any Telemetry object has Istio's standard metrics, and Telemetry objects change them live", async () => {
  const mesh = await startMeteredMesh();
  await requests(mesh);
  await strangers(mesh);
  await throughGateway(mesh);
  await connections(mesh);
  await histograms(mesh);
  await changes(mesh);
  await reports(mesh);
  await carriedOn(mesh);
});

async function requests({ client, server, ports, app }: MeteredMesh): Promise<void> {
  for (let made = 0; made < 3; made++) expect((await call({ port: ports.http, host: CART })).status).toBe(200);
  expect(app.take()).toBe(3);
  expect(await grpcCaller({ port: ports.grpc, host: CART }).count()).toHaveLength(3);
  for (const [side, agent] of Object.entries({ client, server })) {
    const samples = await eventually("all requests are counted", async () => {
      const found = (await istioSamples(agent)).filter(({ name }) => name === REQUESTS);
      return total(found, REQUESTS) === 4 && found;
    });
    const labels = SIDES[side as keyof typeof SIDES];
    expect(samples.find((one) => one.labels.request_protocol === "http")).toEqual({
      name: REQUESTS,
      value: 3,
      labels: { ...labels, ...HTTP },
    });
    expect(samples.find((one) => one.labels.request_protocol === "grpc")?.value).toBe(1);
    expect(samples).toHaveLength(2);
    const messages = await istioSamples(agent);
    const grpc = { ...labels, request_protocol: "grpc", response_code: "200", grpc_response_status: "0" };
    expect(total(messages, "istio_request_messages_total", grpc)).toBe(1);
    expect(total(messages, "istio_response_messages_total", grpc)).toBe(3);
  }
  const own = await client.admin("/stats/prometheus");
  expect(own).toMatch(/^envoy_istio_requests_total\{/m);
  expect(own).toMatch(/^envoy_server_stats_overflow_counter\{\} 0$/m);
}

/** One without a certificate is nobody, wherever it comes from. */
async function strangers({ server, ingress }: MeteredMesh): Promise<void> {
  await call({ port: ingress.http, address: ingress.address, host: CART });
  const plain = await eventually("it is counted", async () => {
    const found = (await istioSamples(server)).filter(
      ({ name, labels }) => name === REQUESTS && labels.connection_security_policy === "none",
    );
    return found.length > 0 && found;
  });
  expect(plain).toHaveLength(1);
  const nobody = Object.keys(BOTH).filter((label) => label.startsWith("source_"));
  expect(plain[0]?.labels).toMatchObject(Object.fromEntries(nobody.map((label) => [label, "unknown"])));
}

/** It is the source for what is behind it. The server does not take it for another at the same address: its certificate says who it is not. */
async function throughGateway({ gateway, gatewayPort, server }: MeteredMesh): Promise<void> {
  expect((await call({ port: gatewayPort, host: "anything.example.com" })).status).toBe(200);
  const edge = { source_principal: "spiffe://cluster.local/ns/shop/sa/edge", source_workload_namespace: "shop" };
  const counted = (agent: RunningAgent, labels: Readonly<Record<string, string>>) =>
    eventually("it is counted", async () => total(await istioSamples(agent), REQUESTS, labels) === 1);
  await counted(gateway, { ...SIDES.client, ...HTTP, ...edge, source_workload: "edge-pod", ...EDGE });
  await counted(server, { ...SIDES.server, ...HTTP, ...edge, ...NOBODY });
}

async function connections({ client, server, ports }: MeteredMesh): Promise<void> {
  const count = async (what: string): Promise<readonly number[]> =>
    Promise.all(
      [client, server].map(async (agent, index) =>
        total(await istioSamples(agent), `istio_tcp_${what}_total`, { ...Object.values(SIDES)[index], request_protocol: "tcp" }),
      ),
    );
  await eventually("those who looked whether it listens are gone", async () =>
    isDeepStrictEqual(await count("connections_opened"), await count("connections_closed")),
  );
  const before = {
    opened: await count("connections_opened"),
    closed: await count("connections_closed"),
    sent: await count("sent_bytes"),
    received: await count("received_bytes"),
  };
  const more = (of: readonly number[], by: number): readonly number[] => of.map((one) => one + by);
  const socket = connect(ports.tcp, "127.0.0.1");
  const [greeting] = (await once(socket, "data")) as [Buffer];
  expect(greeting.toString()).toBe("cart\n");
  await eventually("the connection counts while it is open", async () =>
    isDeepStrictEqual(await count("connections_opened"), more(before.opened, 1)),
  );
  expect(await count("connections_closed")).toEqual(before.closed);
  socket.write("hello");
  await once(socket, "data");
  socket.end();
  await eventually("its end counts", async () => isDeepStrictEqual(await count("connections_closed"), more(before.closed, 1)));
  expect(await count("sent_bytes")).toEqual(more(before.sent, "cart\nhello".length));
  expect(await count("received_bytes")).toEqual(more(before.received, "hello".length));
}

async function histograms({ client, server }: MeteredMesh): Promise<void> {
  for (const [side, agent] of Object.entries({ client, server })) {
    const labels = { ...SIDES[side as keyof typeof SIDES], ...HTTP };
    await eventually(`the ${side} has histograms`, async () => {
      const samples = await istioSamples(agent);
      for (const name of HISTOGRAMS) {
        expect(total(samples, `${name}_count`, labels)).toBe(3);
        expect(total(samples, `${name}_bucket`, { ...labels, le: "+Inf" })).toBe(3);
        expect(total(samples, `${name}_sum`, labels)).toBeGreaterThan(0);
      }
      return true;
    });
  }
}

/** The listener is replaced, and what it counted stays. */
async function changes({ istiod, server, ports }: MeteredMesh): Promise<void> {
  await istiod.write("conf/telemetry.yaml", TELEMETRY);
  const earlier = total(await istioSamples(server), REQUESTS, { source_workload: "web-v1" });
  await eventually("requests are counted with the new labels", async () => {
    await call({ port: ports.http, host: CART, method: "POST" });
    const written = (await istioSamples(server)).filter(({ name, labels }) => name === REQUESTS && labels.method === "write");
    expect(written).toHaveLength(1);
    expect(Number(written[0]?.labels.port)).toBeGreaterThan(0);
    expect(written[0]?.labels).not.toHaveProperty("source_workload");
    expect(written[0]?.labels).toMatchObject({ source_app: "web", destination_workload: "cart-v2" });
    return true;
  });
  const durationsCount = (reads: number): Promise<readonly Sample[]> =>
    eventually("so many are read, and every request has its duration", async () => {
      const now = await istioSamples(server);
      const hasDurations = total(now, "istio_request_duration_milliseconds_count") === total(now, REQUESTS);
      return hasDurations && total(now, REQUESTS, { method: "read" }) === reads && now;
    });
  const samples = await durationsCount(0);
  expect(total(samples, REQUESTS, { source_workload: "web-v1" })).toBeGreaterThanOrEqual(earlier);
  await call({ port: ports.http, host: CART });
  const now = await durationsCount(1);
  expect(total(now, "istio_request_bytes_count")).toBe(total(samples, "istio_request_bytes_count"));
}

/** Bytes of a connection that lasts are reported meanwhile, and not again at its end. */
async function reports({ istiod, client, server, ports }: MeteredMesh): Promise<void> {
  const bytes = async (): Promise<readonly number[]> => {
    const [there, here] = [await istioSamples(client), await istioSamples(server)];
    return [there, here].flatMap((samples) => [
      total(samples, "istio_tcp_sent_bytes_total"),
      total(samples, "istio_tcp_received_bytes_total"),
    ]);
  };
  await istiod.write("conf/reports.yaml", REPORTS);
  await Promise.all(
    [client, server].map((agent) =>
      eventually("listeners report", async () => {
        const listeners = await agent.admin("/config_dump?resource=dynamic_listeners");
        return listeners.includes("access_log_flush_interval") && !listeners.includes("warming_state");
      }),
    ),
  );
  const before = await bytes();
  const socket = connect(ports.tcp, "127.0.0.1");
  await once(socket, "data");
  socket.write("hello");
  await once(socket, "data");
  const after = before.map((value, index) => value + (index % 2 === 0 ? "cart\nhello" : "hello").length);
  await eventually("bytes count while the connection is open", async () => isDeepStrictEqual(await bytes(), after));
  const closed = total(await istioSamples(server), "istio_tcp_connections_closed_total");
  socket.end();
  await eventually("its end counts", async () => total(await istioSamples(server), "istio_tcp_connections_closed_total") === closed + 1);
  expect(await bytes()).toEqual(after);
}

/** Envoy forgets, the agent does not: series that were not in use, and all of them when it is started anew. */
async function carriedOn({ client, server }: MeteredMesh): Promise<void> {
  const before = total(await istioSamples(client), REQUESTS);
  await eventually(
    "the client's Envoy has dropped its series",
    async () => !(await client.admin("/stats/prometheus?filter=requests_total")).includes("istio_requests_total"),
  );
  expect(total(await istioSamples(client), REQUESTS)).toBe(before);
  const counted = total(await istioSamples(server), REQUESTS);
  const pid = await server.envoyPid();
  process.kill(pid, "SIGKILL");
  await eventually("another Envoy runs", async () => (await server.envoyPid()) !== pid);
  await server.ready();
  expect(total(await istioSamples(server), REQUESTS)).toBe(counted);
}
