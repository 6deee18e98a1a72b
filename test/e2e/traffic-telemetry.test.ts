import { access, readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { call } from "../support/calls.ts";
import { tempDir } from "../support/cleanup.ts";
import { type Collector, grpcCollector, httpCollector } from "../support/collector.ts";
import { httpEcho } from "../support/echo.ts";
import { startServiceMesh } from "../support/service-mesh.ts";
import { eventually } from "../support/wait.ts";

const collectorEntry = (protocol: "HTTP" | "GRPC", { port }: Collector): string => `
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: collector, namespace: shop}
spec:
  hosts: [collector.example.com]
  addresses: [127.0.0.77]
  resolution: STATIC
  ports: [{number: 9411, name: main, protocol: ${protocol}}]
  endpoints: [{address: 127.0.0.1, ports: {main: ${port}}}]
`;

const telemetry = (spec: string): string => `
---
apiVersion: telemetry.istio.io/v1
kind: Telemetry
metadata: {name: client, namespace: shop}
spec: {selector: {matchLabels: {app: client}}, ${spec}}
`;

const provider = (definition: string): string => `extensionProviders: [{name: it, ${definition}}]\n`;
const PLACE = "service: collector.example.com, port: 9411";

describe("access logs", () => {
  it("are written as the mesh says, and filtered as Telemetry says", async () => {
    const server = await httpEcho("server");
    const dir = await tempDir();
    const [text, json] = [join(dir, "text.log"), join(dir, "json.log")];
    const mesh = `
accessLogFile: ${join(dir, "mesh.log")}
extensionProviders:
- {name: text, envoyFileAccessLog: {path: ${text}, logFormat: {text: "%REQ(:PATH)% %REQ_WITHOUT_QUERY(:PATH)% %RESPONSE_CODE% %ROUTE_NAME% [%METADATA(CLUSTER:istio:services)%] %CEL(request.method)%"}}}
- {name: json, envoyFileAccessLog: {path: ${json}, logFormat: {labels: {path: "%REQ(:PATH)%", code: "%RESPONSE_CODE%", missing: "%REQ(x-none)%"}}, omitEmptyValues: true}}
`;
    const rules = telemetry(
      `accessLogging: [{providers: [{name: text}]}, {providers: [{name: json}], filter: {expression: "request.url_path == '/json'"}}]`,
    );
    const running = await startServiceMesh({
      backends: [server],
      config: rules,
      istiod: { files: { "mesh.yaml": mesh } },
      proxy: { labels: { app: "client" } },
    });
    await call({ ...running.target, path: "/text?q=1" });
    await call({ ...running.target, path: "/json" });
    const lines = await eventually("both lines are written", async () => {
      const written = (await readFile(text, "utf8")).trim().split("\n");
      return written.length === 2 && written;
    });
    expect(lines[0]).toMatch(/^\/text\?q=1 \/text 200 default \[\[?.*svc\.example\.com.*\] GET$/);
    await eventually("the line is written", async () => (await readFile(json, "utf8")) !== "");
    expect(JSON.parse(await readFile(json, "utf8"))).toEqual({ path: "/json", code: 200 });
    await expect(access(join(dir, "mesh.log"))).rejects.toThrow();
    await running.proxy.assertNothingRejected();
    await running.istiod.write(
      "conf/more.yaml",
      telemetry("accessLogging: [{disabled: true, providers: [{name: text}]}, {disabled: true, providers: [{name: json}]}]"),
    );
    await eventually("nothing is logged any more", async () => {
      const before = await readFile(text, "utf8");
      await call(running.target);
      await systemClock.sleep(200);
      return (await readFile(text, "utf8")) === before;
    });
  });

  const SINKS = [
    [
      "Envoy's service, for requests",
      "envoyHttpAls",
      "/envoy.service.accesslog.v3.AccessLogService/StreamAccessLogs",
      true,
      `${PLACE}, additionalRequestHeadersToLog: [x-who], logName: shop`,
    ],
    [
      "OpenTelemetry",
      "envoyOtelAls",
      "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
      false,
      `${PLACE}, logName: shop, logFormat: {text: "path=%REQ(:PATH)% who=%REQ(x-who)%", labels: {code: "%RESPONSE_CODE%"}}`,
    ],
  ] as const;
  it.each(SINKS)("are sent to %s", async (_, kind, path, stream, fields) => {
    const server = await httpEcho("server");
    const sink = await grpcCollector([{ path, stream }]);
    const running = await startServiceMesh({
      backends: [server],
      config: collectorEntry("GRPC", sink) + telemetry("accessLogging: [{providers: [{name: it}]}]"),
      istiod: { files: { "mesh.yaml": provider(`${kind}: {${fields}}`) } },
      proxy: { labels: { app: "client" } },
    });
    // What is logged before the collector is connected to may be lost, as logs may.
    await eventually("the line arrives", async () => {
      await call({ ...running.target, path: "/logged", headers: { "x-who": "someone" } });
      return sink.has(path, "/logged", "someone");
    });
    await running.proxy.assertNothingRejected();
  });
});

describe("spans", () => {
  interface Tracer {
    readonly definition: string;
    readonly sink: () => Promise<Collector>;
    readonly protocol: "HTTP" | "GRPC";
    readonly path: string;
    /** The header that carries the trace to servers. */
    readonly carrier: string;
  }
  /** Tracers send so many spans without waiting for more. */
  const SPANS_AT_ONCE = 5;
  const grpc = (path: string, stream: boolean) => () => grpcCollector([{ path, stream }]);
  const OTEL_GRPC = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
  const SKYWALKING = "/skywalking.v3.TraceSegmentReportService/collect";
  const TRACERS: Readonly<Record<string, Tracer>> = {
    Zipkin: { definition: `zipkin: {${PLACE}}`, sink: httpCollector, protocol: "HTTP", path: "/api/v2/spans", carrier: "x-b3-traceid" },
    "Zipkin, with another path and W3C headers": {
      definition: `zipkin: {${PLACE}, path: /elsewhere, traceContextOption: USE_B3_WITH_W3C_PROPAGATION, headers: [{name: x-key, value: secret}], timeout: 2s}`,
      sink: httpCollector,
      protocol: "HTTP",
      path: "/elsewhere",
      carrier: "traceparent",
    },
    Datadog: {
      definition: `datadog: {${PLACE}}`,
      sink: httpCollector,
      protocol: "HTTP",
      path: "/v0.4/traces",
      carrier: "x-datadog-trace-id",
    },
    "OpenTelemetry over gRPC": {
      definition: `opentelemetry: {${PLACE}, grpc: {timeout: 2s, initialMetadata: [{name: x-key, value: secret}]}, resourceDetectors: {environment: {}}}`,
      sink: grpc(OTEL_GRPC, false),
      protocol: "GRPC",
      path: OTEL_GRPC,
      carrier: "traceparent",
    },
    "OpenTelemetry over HTTP": {
      definition: `opentelemetry: {${PLACE}, http: {path: /v1/traces, timeout: 2s, headers: [{name: x-key, value: secret}]}}`,
      sink: httpCollector,
      protocol: "HTTP",
      path: "/v1/traces",
      carrier: "traceparent",
    },
    SkyWalking: { definition: `skywalking: {${PLACE}}`, sink: grpc(SKYWALKING, true), protocol: "GRPC", path: SKYWALKING, carrier: "sw8" },
  };
  it.each(Object.entries(TRACERS))("are sent to %s, with tags, and servers hear of the trace", async (_, tracer) => {
    const server = await httpEcho("server");
    const sink = await tracer.sink();
    const tracing = `tracing: [{providers: [{name: it}], randomSamplingPercentage: 100, customTags: {
      colour: {literal: {value: green}}, from: {header: {name: x-from, defaultValue: nowhere}}, home: {environment: {name: NO_SUCH_VARIABLE, defaultValue: unset}}}}]`;
    const running = await startServiceMesh({
      backends: [server],
      config: collectorEntry(tracer.protocol, sink) + telemetry(tracing.replaceAll("\n", " ")),
      istiod: { files: { "mesh.yaml": provider(tracer.definition) } },
      proxy: { labels: { app: "client" } },
    });
    for (let made = 0; made < SPANS_AT_ONCE; made++) await call({ ...running.target, path: "/traced", headers: { "x-from": "garden" } });
    expect(server.hits[0]?.headers).toHaveProperty(tracer.carrier);
    await eventually("the span arrives", () => sink.has(tracer.path, "green", "garden", "unset"));
    if (tracer.definition.includes("x-key")) expect(sink.received[0]?.headers["x-key"]).toBe("secret");
    await running.proxy.assertNothingRejected();
  });

  it("are sampled as the rule says, and not made where it is switched off", async () => {
    const server = await httpEcho("server");
    const sink = await httpCollector();
    const rule = (text: string): string => collectorEntry("HTTP", sink) + telemetry(`tracing: [{providers: [{name: it}], ${text}}]`);
    const running = await startServiceMesh({
      backends: [server],
      config: rule("randomSamplingPercentage: 0"),
      istiod: { files: { "mesh.yaml": provider(`zipkin: {${PLACE}}`) } },
      proxy: { labels: { app: "client" } },
    });
    await call(running.target);
    expect(server.hits[0]?.headers["x-b3-sampled"]).toBe("0");
    await running.istiod.write("conf/more.yaml", rule("disableSpanReporting: true"));
    await eventually("the headers are gone", async () => {
      await call(running.target);
      return server.hits.at(-1)?.headers["x-b3-sampled"] !== "0";
    });
    await running.istiod.write("conf/more.yaml", rule("randomSamplingPercentage: 100, disableContextPropagation: true"));
    await eventually("a span arrives", async () => {
      await call(running.target);
      return sink.has("/api/v2/spans", "svc.example.com");
    });
    expect(server.hits.at(-1)?.headers).not.toHaveProperty("x-b3-traceid");
    await running.proxy.assertNothingRejected();
  });
});
