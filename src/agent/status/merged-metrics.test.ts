import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import { describe, expect, it, onTestFinished } from "vitest";
import { manualClock } from "../../../test/support/manual-clock.ts";
import { freePort } from "../../../test/support/ports.ts";
import { type Clock, systemClock } from "../../base/clock.ts";
import { silentLog } from "../../base/log.ts";
import { createPeers } from "../metrics/peers.ts";
import { createStandardMetrics } from "../metrics/standard-metrics.ts";
import { nodeFacts } from "../metrics/workload-facts.ts";
import { createMergedMetrics } from "./merged-metrics.ts";
import { readScrapeTargets, type ScrapeTarget } from "./scrape-config.ts";

type Page = (response: ServerResponse, headers: IncomingHttpHeaders, url: string) => void;

async function serve(page: Page, address = "127.0.0.1"): Promise<ScrapeTarget> {
  const server = createServer((request, response) => page(response, request.headers, request.url ?? "")).listen(0, address);
  await once(server, "listening");
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return { port: (server.address() as AddressInfo).port, path: "/metrics" };
}

const text =
  (body: string, type = "text/plain; version=0.0.4"): Page =>
  (response) =>
    void response.writeHead(200, { "content-type": type }).end(body);

const OPEN_METRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const ENVOY =
  '# TYPE envoy_cluster_up counter\nenvoy_cluster_up{} 1\n\n# TYPE envoy_istio_requests_total counter\nenvoy_istio_requests_total{a="b"} 2\n';

const SELF = { name: "shop/10.0.0.1", principal: "", facts: nodeFacts({ NAME: "web-1", NAMESPACE: "shop", LABELS: { app: "web" } }) };

interface Sources {
  readonly envoy?: ScrapeTarget;
  readonly application?: readonly ScrapeTarget[];
  readonly clock?: Clock;
}

async function merge({ clock = systemClock, ...sources }: Sources) {
  const metrics = [{ name: "scrapes_total", type: "counter" as const, values: () => [{ value: 1 }] }];
  const merged = createMergedMetrics({
    envoy: sources.envoy,
    application: sources.application ?? [],
    metrics,
    standard: createStandardMetrics({ peers: createPeers({ clock: systemClock, say: () => {} }), self: SELF }),
    clock,
    log: silentLog,
  });
  const { port } = await serve((response, headers, url) => void merged.handle({ headers, url } as never, response));
  return {
    counts: merged.counts,
    get: async (headers: Record<string, string> = {}, query = "") => {
      const answer = await fetch(`http://127.0.0.1:${port}/stats/prometheus${query}`, { headers });
      return { type: answer.headers.get("content-type"), body: await answer.text() };
    },
  };
}

describe("merged metrics", () => {
  it("are those of agent, Envoy and application, with Istio's own under their names", async () => {
    const { get, counts } = await merge({ envoy: await serve(text(ENVOY)), application: [await serve(text("app_up 1\nlast_line 2"))] });
    const { type, body } = await get();
    assert.equal(type, "text/plain; version=0.0.4; charset=utf-8");
    assert.equal(
      body,
      `# TYPE istio_agent_scrapes_total counter\nistio_agent_scrapes_total 1\n${ENVOY.replaceAll("envoy_istio_", "istio_")}app_up 1\nlast_line 2\n`,
    );
    assert.deepEqual(counts, { scrapes: 1, failures: { envoy: 0, application: 0 } });
  });

  it("are OpenMetrics where the application's are: one end, no empty lines", async () => {
    let accept: string | undefined;
    const application = await serve((response, headers) => {
      accept = headers.accept;
      text('app_total 1 # {trace_id="x"} 1\n# EOF\n', OPEN_METRICS)(response, headers, "");
    });
    const { get } = await merge({ envoy: await serve(text(ENVOY)), application: [application] });
    const { type, body } = await get({
      accept: "application/vnd.google.protobuf;q=0.9,application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.2,*/*;q=0.1",
    });
    assert.equal(accept, "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.2");
    assert.equal(type, OPEN_METRICS);
    assert.doesNotMatch(body, /\n\n/);
    assert.ok(body.endsWith('app_total 1 # {trace_id="x"} 1\n# EOF\n'));
    assert.equal(body.match(/# EOF/g)?.length, 1);
    assert.match(body, /^# TYPE istio_agent_scrapes counter\nistio_agent_scrapes_total 1\n/);
  });

  it("are text where applications differ, and never end in the middle", async () => {
    const open = await serve(text("a_total 1\n# EOF\n", OPEN_METRICS));
    const { get } = await merge({ envoy: await serve(text(ENVOY)), application: [open, await serve(text("b 2\n"))] });
    const { type, body } = await get();
    assert.match(type ?? "", /^text\/plain/);
    assert.ok(body.endsWith("a_total 1\nb 2\n"));
  });

  it("do without an application that is gone, refuses, breaks off, says too much or nothing; each is counted", async () => {
    const broken: readonly ScrapeTarget[] = [
      { port: await freePort(), path: "/metrics" },
      await serve((response) => void response.writeHead(500).end()),
      await serve((response) => {
        response.writeHead(200, { "content-type": "text/plain", "content-length": "100" }).write("whole 1\nhalf 12");
        response.destroy();
      }),
      await serve(text(`many{x="y"} 1\n`.repeat(800_000))),
      await serve(() => {}),
    ];
    const many = "envoy_many{} 1\n".repeat(200_000);
    const clock = manualClock();
    const { get, counts } = await merge({ envoy: await serve(text(`${many}${ENVOY}`)), application: broken, clock });
    const asked = get({ "x-prometheus-scrape-timeout-seconds": "10" });
    // What is left is the time for all of it, and that for the one that says nothing.
    await expect.poll(() => clock.waiting).toBe(2);
    clock.advance(7_200);
    const { body } = await asked;
    assert.match(body, /envoy_cluster_up\{\} 1\n/, "what hangs costs others nothing");
    assert.match(body, /istio_agent_scrapes_total 1\n/);
    assert.doesNotMatch(body, /half/);
    const ofApplications = body.length - many.length;
    assert.ok(
      ofApplications > 9 * 1024 * 1024 && ofApplications < 11 * 1024 * 1024,
      `${ofApplications} bytes are passed on of what is too much`,
    );
    assert.deepEqual(counts.failures, { envoy: 0, application: 5 });
  });

  it("are read where an application packs them although nobody asked, and done without where nobody can", async () => {
    const packed =
      (encoding: string, body: Uint8Array): Page =>
      (response) =>
        void response.writeHead(200, { "content-type": "text/plain", "content-encoding": encoding }).end(body);
    const whole = gzipSync("one 1\ntwo 2\n");
    const application = [
      await serve(packed("GZIP", whole)),
      await serve(packed("br", whole)),
      await serve(packed("gzip", whole.subarray(0, 15))),
    ];
    const { get, counts } = await merge({ application });
    expect((await get()).body).toMatch(/^(#.*\n|istio_agent_.*\n)*one 1\ntwo 2\n$/);
    expect(counts.failures.application).toBe(2);
  });

  it("wait for an application that is slow, as long as Prometheus does", async () => {
    const slow = await serve((response) => void setTimeout(() => response.writeHead(200).end("late 1\n"), 700));
    const { get } = await merge({ application: [slow] });
    expect((await get({ "x-prometheus-scrape-timeout-seconds": "1" })).body).toContain("late 1\n");
  });

  it("do without Envoy, and pass the question on to it where it is there", async () => {
    const gone = await merge({
      envoy: { port: await freePort(), path: "/stats/prometheus" },
      application: [await serve(text("app_up 1\n"), "::1")],
    });
    assert.match((await gone.get()).body, /app_up 1\n$/);
    assert.deepEqual(gone.counts.failures, { envoy: 1, application: 0 });
    let asked = "";
    const there = await merge({
      envoy: await serve((response, _, url) => {
        asked = url;
        response.end();
      }),
    });
    await there.get({}, "?usedonly&filter=x");
    assert.equal(asked, "/metrics?usedonly&filter=x");
  });
});

const NO_PORTS = { status: 0, others: [] };

describe("annotations of Prometheus", () => {
  it("say where the application's metrics are", () => {
    const targets = (json: string): readonly ScrapeTarget[] => readScrapeTargets(json, NO_PORTS).targets;
    assert.deepEqual(targets(""), []);
    assert.deepEqual(targets('{"scrape":"true"}'), [{ port: 80, path: "/metrics" }]);
    assert.deepEqual(targets('{"scrape":"false","port":"9090"}'), []);
    assert.deepEqual(targets('{"scrape":"true","port":"9090","path":"m"}'), [{ port: 9090, path: "/m" }]);
    assert.deepEqual(targets('{"targets":[{"port":"1","path":""},{"port":"2","path":"/x"}]}'), [
      { port: 1, path: "/metrics" },
      { port: 2, path: "/x" },
    ]);
  });

  it("never mean the agent or the proxy", () => {
    const read = (given: unknown) => readScrapeTargets(JSON.stringify(given), { status: 999, others: [998] });
    for (const port of ["15020", "015020", "999"]) assert.throws(() => read({ port }), /proxy's or its agent's/);
    for (const port of ["15020", "15090", "998"]) assert.throws(() => read({ targets: [{ port }] }), /proxy's or its agent's/);
    for (const port of ["15090", "998", "15021"]) assert.deepEqual(read({ port }), { targets: [], leftOut: Number(port) });
    assert.throws(() => read({ port: "http" }), /no port/);
    assert.throws(() => readScrapeTargets("{", NO_PORTS), /cannot be used/);
  });

  it("are asked for where the application sends to, but not elsewhere", async () => {
    const at = (location: (port: number) => string): Promise<ScrapeTarget> =>
      serve((response, { host = "" }, url) => {
        if (url.startsWith("/metrics/")) response.writeHead(200).end(`app_up{url="${url}"} 1\n`);
        else response.writeHead(308, { location: location(Number(host.split(":")[1])) }).end("gone");
      });
    const bodyOf = async (target: ScrapeTarget) => {
      const { get, counts } = await merge({ application: [target] });
      return [(await get()).body.split("\n").find((line) => line.startsWith("app_")), counts.failures.application];
    };
    expect(await bodyOf(await at(() => "/metrics/?a=b"))).toEqual(['app_up{url="/metrics/?a=b"} 1', 0]);
    expect(await bodyOf(await at((port) => `http://localhost:${port}/metrics/`))).toEqual(['app_up{url="/metrics/"} 1', 0]);
    const elsewhere = await at(() => "/metrics/");
    for (const location of [
      `http://localhost:${elsewhere.port}/metrics/`,
      "http://192.0.2.1/metrics/",
      "/again",
      "http://[",
      "file:///etc/passwd",
    ])
      expect(await bodyOf(await at(() => location))).toEqual([undefined, 1]);
  });
});
