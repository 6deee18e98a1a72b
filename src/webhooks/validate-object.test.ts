import type { Registry } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { messageRegistry } from "../wire/json.ts";
import { validateObject } from "./validate-object.ts";

const GROUPS: Readonly<Record<string, string>> = {
  AuthorizationPolicy: "security.istio.io",
  Telemetry: "telemetry.istio.io",
  WasmPlugin: "extensions.istio.io",
  TrafficExtension: "extensions.istio.io",
};

interface Circumstances {
  /** More fields of the object. */
  readonly more?: Readonly<Record<string, unknown>>;
  readonly registry?: Registry;
}

function judge(kind: string, spec: unknown, { more = {}, registry }: Circumstances = {}) {
  const group = GROUPS[kind] ?? "networking.istio.io";
  const apiVersion = `${group}/${kind === "EnvoyFilter" ? "v1alpha3" : group === "extensions.istio.io" ? "v1alpha1" : "v1"}`;
  const object = { apiVersion, kind, metadata: { name: "one", namespace: "shop" }, spec, ...more };
  const request = { uid: "u", operation: "CREATE", kind: { group, version: "v1", kind }, namespace: "shop", name: "one", object };
  const { allowed, warnings = [], message = "" } = validateObject(request, registry).answer;
  return { allowed, warnings, message };
}

const route = { route: [{ destination: { host: "a" } }] };
const virtualService = (http: object) => ({ hosts: ["a"], http: [http] });
const source = (from: object) => ({ rules: [{ from: [{ source: from }] }] });
const when = (key: string, value: string) => ({ rules: [{ when: [{ key, values: [value] }] }] });
const portPolicy = (port: object) => ({
  host: "a",
  trafficPolicy: { portLevelSettings: [{ port, connectionPool: { tcp: { maxConnections: 1 } } }] },
});
const aggression = (value: number) => ({ host: "a", trafficPolicy: { loadBalancer: { warmup: { duration: "1s", aggression: value } } } });
const ingress = (port: object) => ({ ingress: [{ port: { number: 90, ...port }, connectionPool: { http: { maxRetries: 1 } } }] });

describe("validateObject", () => {
  /** How Istio's webhook decides, too. */
  const table: readonly (readonly [kind: string, spec: unknown, verdict: "taken" | "warned" | "refused"])[] = [
    ["AuthorizationPolicy", source({ trustDomains: ["old_domain", "*.test", "prod*"] }), "taken"],
    ["AuthorizationPolicy", source({ trustDomains: ["a/b"] }), "refused"],
    ["AuthorizationPolicy", source({ notTrustDomains: ["a*b"] }), "refused"],
    ["AuthorizationPolicy", source({ notTrustDomains: ["*a*"] }), "refused"],
    ["AuthorizationPolicy", source({ serviceAccounts: ["ns/*"] }), "refused"],
    ["AuthorizationPolicy", source({ serviceAccounts: ["x".repeat(321)] }), "refused"],
    ["AuthorizationPolicy", source({ notServiceAccounts: Array.from({ length: 17 }, (_, at) => `a${at}`) }), "refused"],
    ["AuthorizationPolicy", when("source.serviceAccount", "ns/sa"), "taken"],
    ["AuthorizationPolicy", when("source.serviceAccount", "a*"), "refused"],
    ["AuthorizationPolicy", when("source.trustDomain", "a*b"), "refused"],
    ["DestinationRule", aggression(1), "taken"],
    ["DestinationRule", aggression(0), "refused"],
    ["DestinationRule", portPolicy({ number: 80 }), "taken"],
    ["DestinationRule", portPolicy({}), "warned"],
    ["DestinationRule", portPolicy({ number: 65_536 }), "warned"],
    ["Sidecar", ingress({ name: "a_b", protocol: "HTTP" }), "refused"],
    ["Sidecar", ingress({ name: "http", protocol: "HTTP" }), "taken"],
    ["Sidecar", ingress({ name: "any" }), "warned"],
    ["VirtualService", virtualService({ ...route, headers: { request: { add: { x: "a\tb" } } } }), "taken"],
    ["VirtualService", virtualService({ ...route, headers: { request: { add: { x: "a\nb" } } } }), "refused"],
    ["VirtualService", virtualService({ redirect: { uri: "/", port: 0 } }), "warned"],
    ["VirtualService", virtualService({ redirect: { uri: "/", port: 65_536 } }), "refused"],
    ["WasmPlugin", { url: "registry.test:5000/module:tag" }, "taken"],
    ["WasmPlugin", { url: "module" }, "taken"],
    ["WasmPlugin", { url: "::1" }, "refused"],
    ["WasmPlugin", { url: "{}" }, "refused"],
    ["EnvoyFilter", { configPatches: [{ applyTo: "CLUSTER", patch: { operation: "REMOVE" } }] }, "warned"],
  ];
  for (const [kind, spec, verdict] of table) {
    it(`${verdict === "refused" ? "refuses" : verdict === "taken" ? "takes" : "warns of"} ${kind} ${JSON.stringify(spec).slice(0, 100)}`, () => {
      const { allowed, warnings } = judge(kind, spec);
      expect(allowed ? (warnings.length > 0 ? "warned" : "taken") : "refused").toBe(verdict);
    });
  }

  /** Where Istio's decides otherwise: docs/from-istio.md says why. */
  const otherwise: readonly (readonly [kind: string, spec: unknown, verdict: "taken" | "refused"])[] = [
    ["VirtualService", virtualService({ directResponse: { status: 600 } }), "refused"],
    ["VirtualService", virtualService({ ...route, fault: { abort: { httpStatus: 600 } } }), "refused"],
    ["VirtualService", { ...virtualService(route), gateways: ["mesh", "not a name"] }, "refused"],
    ["Telemetry", { tracing: [{ customTags: { a: {} } }] }, "refused"],
    ["Gateway", { servers: [{ port: { number: 80, name: "http", protocol: "HTTP" }, hosts: ["::1"] }] }, "taken"],
  ];
  for (const [kind, spec, verdict] of otherwise) {
    it(`${verdict === "refused" ? "refuses" : "takes"} ${kind} ${JSON.stringify(spec).slice(0, 100)}`, () => {
      expect(judge(kind, spec).allowed).toBe(verdict === "taken");
    });
  }

  it("lets fields and versions of a newer schema in, with a word about them", () => {
    const newer = judge("VirtualService", virtualService({ ...route, telepathic: true }));
    expect(newer.allowed).toBe(true);
    expect(newer.warnings).toEqual([expect.stringMatching(/^spec\.http\[0\]\.telepathic: .*\[schema\.newer-field\]$/)]);
    const version = judge("VirtualService", virtualService(route), { more: { apiVersion: "networking.istio.io/v9" } });
    expect([version.allowed, version.warnings.length]).toEqual([true, 1]);
  });

  it("looks into what an EnvoyFilter brings, as far as it is known", async () => {
    const registry = await messageRegistry();
    const brings = (config: object) => {
      const value = {
        name: "f",
        typed_config: { "@type": "type.googleapis.com/envoy.extensions.filters.http.buffer.v3.Buffer", ...config },
      };
      const spec = { configPatches: [{ applyTo: "HTTP_FILTER", patch: { operation: "INSERT_FIRST", value } }] };
      return judge("EnvoyFilter", spec, { registry });
    };
    expect(brings({ max_request_bytes: 5, newer_field: 1 }).allowed).toBe(true);
    expect(brings({ "@type": "type.googleapis.com/envoy.extensions.filters.http.newer.v3.Newer", a: 1 }).allowed).toBe(true);
    expect(brings({ max_request_bytes: -1 }).message).toMatch(
      /^configuration is invalid: spec\.configPatches\[0\]\.patch\.value\.typed_config\.max_request_bytes: /,
    );
    const script = (inline_code: string) =>
      brings({ "@type": "type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua", inline_code });
    expect(script("a = 1").allowed).toBe(true);
    expect(script("a = ").message).toMatch(/typed_config\.inline_code: .* line 1: unexpected end of the script \[field\.invalid\]/);
  });

  it("reads the script of a TrafficExtension", () => {
    const extension = (inlineCode: string) => judge("TrafficExtension", { lua: { inlineCode } });
    expect(extension("a = 1").allowed).toBe(true);
    expect(extension("a = 1\nend").message).toMatch(/spec\.lua\.inlineCode: .* line 2: unexpected "end" \[field\.invalid\]/);
  });

  it("says which entries of lists and maps are nothing, each with its place", () => {
    const empty = { hosts: ["a", null], http: [null, { match: [null], headers: { request: { add: { x: null } } }, ...route }] };
    for (const place of ["hosts[1]", "http[0]", "http[1].match[0]", "http[1].headers.request.add.x"])
      expect(judge("VirtualService", empty).message).toContain(`spec.${place}: must be `);
    expect(judge("VirtualService", { ...virtualService(route), gateways: null, tls: null }).allowed).toBe(true);
  });

  it("refuses fields beside the spec, which no schema has", () => {
    expect(judge("VirtualService", virtualService(route), { more: { specc: {} } }).message).toMatch(/^configuration is invalid: specc: /);
  });
});
