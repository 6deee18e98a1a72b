import { describe, expect, it } from "vitest";
import { meshFrom } from "../support/mesh-from.ts";
import { simConfig } from "./sim-config.ts";
import { type Call, type HttpCall, type Outcome, simulate } from "./simulate.ts";

const CONFIG = `
proxies:
- {name: client, namespace: library, address: 10.9.0.1}
- {name: closed, namespace: library, address: 10.9.0.2, labels: {app: closed}}
- {name: loans, namespace: library, address: 10.1.0.1}
- {name: strict, namespace: library, address: 10.1.0.2}
- {name: edge, type: router, namespace: edge, labels: {app: edge}}
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: loans, namespace: library}
spec:
  hosts: [loans.library.svc.cluster.local]
  addresses: [10.96.0.1]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP, targetPort: 8080}, {number: 5000, name: tcp, protocol: TCP}, {number: 7000, name: any}]
  endpoints:
  - {address: 10.1.0.1, labels: {version: v1, security.istio.io/tlsMode: istio}}
  - {address: 10.1.0.2, labels: {version: v2, app: strict}}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: loans, namespace: library}
spec: {host: loans, subsets: [{name: v1, labels: {version: v1}}, {name: v2, labels: {version: v2}}, {name: none, labels: {version: none}}]}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: loans, namespace: library}
spec:
  hosts: [loans, loans.test]
  gateways: [mesh, edge/edge]
  http:
  - {name: exact, match: [{uri: {exact: /v1}}], route: [{destination: {host: loans, subset: v1, port: {number: 80}}}]}
  - {name: regex, match: [{uri: {regex: "/n[0-9]+"}, headers: {x-card: {prefix: gold}}, withoutHeaders: {x-not: {exact: "1"}}}], route: [{destination: {host: loans, subset: v2}}]}
  - {name: query, match: [{queryParams: {page: {exact: "2"}}, method: {exact: PUT}}], route: [{destination: {host: loans, subset: v2}}]}
  - {name: split, match: [{uri: {prefix: /split}}], route: [{destination: {host: loans, subset: v1}, weight: 90}, {destination: {host: loans, subset: v2}, weight: 10}]}
  - {name: moved, match: [{uri: {exact: /moved}}], redirect: {uri: /there, authority: new.test, redirectCode: 302}}
  - {name: tea, match: [{uri: {exact: /tea}}], directResponse: {status: 418}}
  - {name: lost, match: [{uri: {exact: /lost}}], route: [{destination: {host: nowhere.test}}]}
  - {name: empty, match: [{uri: {exact: /empty}}], route: [{destination: {host: loans, subset: none}}]}
  - {name: rest, route: [{destination: {host: loans}}]}
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: outside, namespace: library}
spec:
  hosts: [a.isbn.test, "*.wiki.test"]
  location: MESH_EXTERNAL
  resolution: NONE
  ports: [{number: 443, name: tls, protocol: TLS}, {number: 80, name: http, protocol: HTTP}]
---
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {name: closed, namespace: library}
spec: {workloadSelector: {labels: {app: closed}}, outboundTrafficPolicy: {mode: REGISTRY_ONLY}}
---
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: {name: strict, namespace: library}
spec: {selector: {matchLabels: {app: strict}}, mtls: {mode: STRICT}}
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge, namespace: edge}
spec:
  selector: {app: edge}
  servers:
  - {port: {number: 80, name: http, protocol: HTTP}, hosts: [loans.test], tls: {httpsRedirect: true}}
  - {port: {number: 443, name: https, protocol: HTTPS}, hosts: [loans.test], tls: {mode: SIMPLE, credentialName: loans}}
`;

const mesh = meshFrom(CONFIG);

async function outcome(proxy: string, call: Call): Promise<Outcome> {
  const found = mesh.proxies.find(({ name }) => name === proxy);
  if (found === undefined) throw new Error(`no proxy ${proxy}`);
  return simulate(simConfig(await mesh.resources(found)), call);
}

const HOST = "loans.library.svc.cluster.local";
const cluster = (subset = "", port = 80, host = HOST): string => `outbound|${port}|${subset}|${host}`;
const http = (path: string, more: Partial<HttpCall> = {}): Call => ({
  direction: "outbound",
  address: "10.96.0.1",
  port: 80,
  http: { host: "loans", path, ...more },
});
const bytes = (address: string, port: number): Call => ({ direction: "outbound", address, port });
const tls = (sni: string): Call => ({ direction: "outbound", address: "192.0.2.1", port: 443, tls: { sni } });

describe("what a client's calls reach", () => {
  const table: readonly [what: string, call: Call, want: Partial<Outcome>][] = [
    [
      "a rule's path",
      http("/v1"),
      { kind: "forwarded", route: "exact", cluster: cluster("v1"), endpoints: [{ address: "10.1.0.1:8080", tls: "mutual" }] },
    ],
    [
      "a rule's expression and headers",
      http("/n12", { headers: { "x-card": "golden", "x-not": "2" } }),
      { route: "regex", endpoints: [{ address: "10.1.0.2:8080", tls: "plaintext" }] },
    ],
    ["the next rule, when a header forbids it", http("/n12", { headers: { "x-card": "golden", "x-not": "1" } }), { route: "rest" }],
    ["a rule's query and method", http("/any?page=2", { method: "PUT" }), { route: "query" }],
    ["the larger share", http("/split"), { cluster: cluster("v1") }],
    ["the smaller share", { ...http("/split"), dice: 0.95 }, { cluster: cluster("v2") }],
    ["a redirect", http("/moved"), { kind: "answered", status: 302, location: "http://new.test/there" }],
    ["a fixed answer", http("/tea"), { kind: "answered", status: 418 }],
    ["a cluster that is not there", http("/lost"), { kind: "missed", what: "cluster", name: cluster("", 80, "nowhere.test") }],
    ["a subset without endpoints", http("/empty"), { kind: "missed", what: "endpoint", name: cluster("none") }],
    ["a host by any of its names", http("/", { host: `${HOST}:80` }), { virtualHost: `${HOST}:80`, route: "rest" }],
    ["a host by its address", http("/", { host: "10.96.0.1" }), { virtualHost: `${HOST}:80` }],
    [
      "a wildcard host where it was sent",
      { ...http("/", { host: "en.wiki.test" }), address: "192.0.2.9" },
      { cluster: cluster("", 80, "*.wiki.test"), endpoints: [{ address: "192.0.2.9:80", tls: "plaintext" }] },
    ],
    [
      "an unknown host where it was sent",
      { ...http("/", { host: "elsewhere.test" }), address: "192.0.2.9" },
      { virtualHost: "allow_any", cluster: "PassthroughCluster" },
    ],
    ["TCP by address", bytes("10.96.0.1", 5000), { listener: "10.96.0.1_5000", cluster: cluster("", 5000) }],
    ["unknown TCP where it was sent", bytes("192.0.2.9", 9999), { listener: "virtualOutbound", cluster: "PassthroughCluster" }],
    ["TLS by server name", tls("a.isbn.test"), { cluster: cluster("", 443, "a.isbn.test") }],
    ["TLS by wildcard", tls("en.wiki.test"), { cluster: cluster("", 443, "*.wiki.test") }],
    ["TLS of an unknown name where it was sent", tls("elsewhere.test"), { cluster: "PassthroughCluster" }],
    ["bytes on a sniffed port", bytes("10.96.0.1", 7000), { cluster: cluster("", 7000) }],
    ["HTTP on a sniffed port", { ...bytes("10.96.0.1", 7000), http: { host: "anything" } }, { virtualHost: `${HOST}:7000` }],
  ];
  it.for(table)("%s", async ([, call, want]) => expect(await outcome("client", call)).toMatchObject(want));

  it("nothing that is not registered, where only that is allowed", async () => {
    expect(await outcome("closed", { ...http("/", { host: "elsewhere.test" }), address: "192.0.2.9" })).toMatchObject({
      kind: "answered",
      status: 502,
    });
    expect(await outcome("closed", bytes("192.0.2.9", 9999))).toMatchObject({ kind: "missed", what: "endpoint", name: "BlackHoleCluster" });
    expect(await outcome("closed", http("/v1"))).toMatchObject({ cluster: cluster("v1") });
  });
});

describe("what reaches a server", () => {
  const inbound = (address: string, more: Partial<Call>): Call => ({ direction: "inbound", address, port: 8080, ...more });
  const MESH_TLS = { sni: `outbound_.80_._.${HOST}`, alpn: ["istio-http/1.1"] };

  it("plaintext and mutual TLS, where both are allowed", async () => {
    expect(await outcome("loans", inbound("10.1.0.1", { http: { host: "loans" } }))).toMatchObject({
      cluster: "inbound|8080||",
      serverTls: "plaintext",
      endpoints: [{ address: "10.1.0.1:8080" }],
    });
    expect(await outcome("loans", inbound("10.1.0.1", { http: { host: "loans" }, tls: MESH_TLS }))).toMatchObject({
      cluster: "inbound|8080||",
      serverTls: "mutual",
    });
  });

  it("only mutual TLS, where the policy says so", async () => {
    expect(await outcome("strict", inbound("10.1.0.2", { http: { host: "loans" } }))).toMatchObject({
      kind: "missed",
      what: "filter chain",
    });
    expect(await outcome("strict", inbound("10.1.0.2", { http: { host: "loans" }, tls: MESH_TLS }))).toMatchObject({
      cluster: "inbound|8080||",
      serverTls: "mutual",
    });
  });
});

describe("what a gateway does", () => {
  const at = (port: number, host: string, more: Partial<Call> = {}): Call => ({
    direction: "bound",
    address: "10.9.9.9",
    port,
    http: { host, path: "/v1" },
    ...more,
  });

  it.for<[what: string, call: Call, want: Partial<Outcome>]>([
    ["sends plain requests to TLS", at(80, "loans.test"), { kind: "answered", status: 301, location: "https://loans.test/v1" }],
    [
      "forwards what came by TLS",
      at(443, "loans.test", { tls: { sni: "loans.test" } }),
      { serverTls: "tls", route: "exact", cluster: cluster("v1") },
    ],
    ["takes no other server name", at(443, "loans.test", { tls: { sni: "other.test" } }), { kind: "missed", what: "filter chain" }],
    ["knows no other host", at(443, "other.test", { tls: { sni: "loans.test" } }), { kind: "missed", what: "virtual host" }],
    ["has no other port", at(9000, "loans.test"), { kind: "missed", what: "listener" }],
  ])("%s", async ([, call, want]) => expect(await outcome("edge", call)).toMatchObject(want));
});
