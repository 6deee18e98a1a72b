import { fromJson, type JsonObject } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import type { StatTag } from "../../../envoy/filters/stats-log.ts";
import { MeshConfigSchema } from "../../../gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import { TelemetrySchema } from "../../../gen/istio/telemetry/v1alpha1/telemetry_pb.js";
import type { Side } from "../traits.ts";
import { metricLogsOf } from "./standard-metrics.ts";

const PROVIDERS: JsonObject = {
  extensionProviders: [
    { name: "prometheus", prometheus: {} },
    { name: "stackdriver", stackdriver: {} },
  ],
};

/** Tags by metric that is counted: rules are those of the levels from the mesh to the workload. */
function counted(
  rules: readonly (readonly JsonObject[])[],
  { mesh = {}, side = "client" as Side }: { mesh?: JsonObject; side?: Side } = {},
): ReadonlyMap<string, readonly StatTag[]> {
  const { http, tcp } = metricLogsOf({
    mesh: fromJson(MeshConfigSchema, { ...PROVIDERS, ...mesh }),
    telemetry: rules.map((metrics) => fromJson(TelemetrySchema, { metrics: [...metrics] })),
    side,
  });
  return new Map(
    [...http, ...tcp].flatMap(({ counters, histograms }) => [...counters, ...histograms].map(({ name, tags }) => [name, tags])),
  );
}

const names = (...of: Parameters<typeof counted>): readonly string[] => [...counted(...of).keys()].sort();
const providers = (...of: readonly string[]): JsonObject => ({ providers: of.map((name) => ({ name })) });
const overrides = (...of: readonly JsonObject[]): JsonObject => ({ overrides: [...of] });
const tagNames = (tags: readonly StatTag[] | undefined): readonly string[] => (tags ?? []).map(({ name }) => name);

const ALL = [
  "messages_total",
  "request_bytes",
  "request_duration_milliseconds",
  "requests_total",
  "response_bytes",
  "tcp_connections_closed_total",
  "tcp_connections_opened_total",
  "tcp_received_bytes_total",
  "tcp_sent_bytes_total",
];

describe("standard metrics", () => {
  it("are on without any object, and where providers that proxies serve are named", () => {
    expect(names([])).toEqual(ALL);
    expect(names([[providers("prometheus")]])).toEqual(ALL);
    expect(names([[providers("stackdriver", "Prometheus")]])).toEqual(ALL);
    expect(names([[providers("stackdriver")]])).toEqual([]);
    expect(names([[providers("stackdriver")], [providers("prometheus")]])).toEqual(ALL);
    expect(names([], { mesh: { defaultProviders: { metrics: ["stackdriver"] } } })).toEqual([]);
  });

  it("are disabled one by one or all, on a side, and enabled again further down", () => {
    const off = { disabled: true };
    expect(names([[overrides(off)]])).toEqual([]);
    expect(names([[overrides({ ...off, match: { metric: "ALL_METRICS", mode: "SERVER" } })]])).toEqual(ALL);
    expect(names([[overrides({ ...off, match: { mode: "SERVER" } })]], { side: "server" })).toEqual([]);
    expect(names([[overrides({ ...off, match: { mode: "CLIENT" } })]], { side: "gateway" })).toEqual([]);
    expect(names([[overrides({ ...off, match: { metric: "REQUEST_SIZE" } })]])).toEqual(ALL.filter((name) => name !== "request_bytes"));
    expect(names([[overrides(off)], [overrides({ disabled: false, match: { metric: "REQUEST_COUNT" } })]])).toEqual(ALL);
    expect(
      names([
        [overrides({ ...off, match: { metric: "REQUEST_SIZE" } })],
        [overrides({ disabled: false, match: { metric: "REQUEST_SIZE" } })],
      ]),
    ).toEqual(ALL);
  });

  it("are changed only by rules that speak of their provider", () => {
    const off = overrides({ disabled: true });
    expect(names([[{ ...providers("stackdriver"), ...off }], [providers("prometheus")]])).toEqual(ALL);
    expect(names([[providers("prometheus")], [off]])).toEqual([]);
  });

  it("have labels taken away and set, the later rule last", () => {
    const rule = (tagOverrides: JsonObject, metric = "REQUEST_COUNT"): JsonObject => overrides({ match: { metric }, tagOverrides });
    const tags = counted([
      [rule({ request_host: { value: "request.host" }, response_flags: { operation: "REMOVE" } })],
      [rule({ request_host: { value: "request.method" }, source_app: { operation: "REMOVE" }, reporter: { operation: "REMOVE" } })],
    ]);
    const requests = tags.get("requests_total") ?? [];
    expect(requests).toContainEqual({ name: "request_host", format: "%CEL(request.method)%" });
    expect(requests).toContainEqual({ name: "_without", format: "reporter,source_app" });
    expect(tagNames(requests)).not.toContain("response_flags");
    expect(tagNames(requests)).toContain("reporter");
    expect(tagNames(tags.get("request_bytes"))).toContain("response_flags");
  });

  it("keep a label whose expression Envoy does not take", () => {
    const tagOverrides = { response_code: { value: "request.host.split(':')" }, source_principal: { value: "request.host" } };
    const requests = counted([[overrides({ tagOverrides })]]).get("requests_total") ?? [];
    expect(requests).toContainEqual({ name: "response_code", format: "%RESPONSE_CODE%" });
    expect(tagNames(requests)).not.toContain("source_principal");
  });

  it("count messages of gRPC in both directions at once, unless one is changed", () => {
    const messages = (...of: readonly JsonObject[]) => names([[overrides(...of)]]).filter((name) => name.endsWith("messages_total"));
    const off = (metric: string) => ({ match: { metric }, disabled: true });
    expect(messages(off("GRPC_REQUEST_MESSAGES"))).toEqual(["response_messages_total"]);
    expect(messages(off("GRPC_REQUEST_MESSAGES"), off("GRPC_RESPONSE_MESSAGES"))).toEqual([]);
    expect(messages({ match: { metric: "GRPC_REQUEST_MESSAGES" }, tagOverrides: { a: { value: "'b'" } } })).toHaveLength(2);
    expect(messages({ tagOverrides: { a: { value: "'b'" } } })).toEqual(["messages_total"]);
  });

  it("have reports of connections that last, where an interval is said", () => {
    const logs = (reportingInterval: string) =>
      metricLogsOf({
        mesh: fromJson(MeshConfigSchema, PROVIDERS),
        telemetry: [fromJson(TelemetrySchema, { metrics: [{ reportingInterval }] })],
        side: "server",
      }).tcp.map(({ at, reportMs = 0, counters, gauges = [] }) =>
        [at, reportMs, ...[...counters, ...gauges].map(({ name }) => name)].join(" "),
      );
    expect(logs("5s")).toEqual([
      "connected 0 tcp_connections_opened_total",
      "connectionEnd 0 tcp_connections_closed_total",
      "connectionEnd 5000 tcp_sent_bytes_total tcp_received_bytes_total",
      "report 5000 tcp_sent_bytes_live tcp_received_bytes_live",
    ]);
    expect(logs("0.001s").at(-1)).toMatch(/^report 1000 /);
    expect(logs("5000000s").at(-1)).toMatch(/^report 4294967295 /);
  });

  it("are not counted by what all labels are gone for", () => {
    const gone = ["workload", "workload_namespace", "canonical_service", "canonical_revision", "app", "version", "cluster"];
    const removed = Object.fromEntries(gone.map((label) => [`source_${label}`, { operation: "REMOVE" }]));
    const at = (tagOverrides: JsonObject) => tagNames(counted([[overrides({ tagOverrides })]], { side: "server" }).get("requests_total"));
    expect(at({})).toContain("_peer");
    expect(at(removed)).not.toContain("_peer");
    expect(at({ ...removed, source_app: { value: "'x'" } })).not.toContain("_peer");
    const { source_app: _, ...some } = removed;
    expect(at(some)).toContain("_peer");
  });
});
