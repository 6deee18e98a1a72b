import fc from "fast-check";
import { expect, it } from "vitest";
import { simConfig } from "../sim/sim-config.ts";
import { type HttpCall, type Outcome, simulate } from "../sim/simulate.ts";
import { call } from "../support/calls.ts";
import { httpEcho } from "../support/echo.ts";
import { startIstiod } from "../support/istiod.ts";
import { meshFrom } from "../support/mesh-from.ts";
import { freePort } from "../support/ports.ts";
import { listening, startProxy } from "../support/proxy.ts";

interface Ports {
  readonly edge: number;
  readonly service: number;
  readonly one: number;
  readonly two: number;
}

const documents = ({ edge, service, one, two }: Ports): string => `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: loans, namespace: shop}
spec:
  hosts: [loans.shop.svc.cluster.local, "*.branch.test"]
  location: MESH_INTERNAL
  resolution: NONE
  ports: [{number: ${service}, name: http, protocol: HTTP}]
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: versions, namespace: shop}
spec:
  hosts: [versions.test]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: ${service}, name: http, protocol: HTTP}]
  endpoints:
  - {address: 127.0.0.1, ports: {http: ${one}}, labels: {version: one}}
  - {address: 127.0.0.1, ports: {http: ${two}}, labels: {version: two}}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: versions, namespace: shop}
spec: {host: versions.test, subsets: [{name: one, labels: {version: one}}, {name: two, labels: {version: two}}, {name: none, labels: {version: none}}]}
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge, namespace: shop}
spec: {selector: {app: edge}, servers: [{port: {number: ${edge}, name: http, protocol: HTTP}, hosts: [loans.shop.svc.cluster.local, "*.branch.test", versions.test]}]}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: all, namespace: shop}
spec:
  hosts: [loans.shop.svc.cluster.local, "*.branch.test"]
  gateways: [mesh, shop/edge]
  http:
  - {match: [{uri: {exact: /a}}, {uri: {prefix: /B/}, ignoreUriCase: true}], route: [{destination: {host: versions.test, subset: one}}]}
  - {match: [{uri: {regex: "/n[0-9]+"}, headers: {x-card: {prefix: gold}}}], route: [{destination: {host: versions.test, subset: two}}]}
  - {match: [{uri: {prefix: /b}, withoutHeaders: {x-test: {exact: "1"}}}], route: [{destination: {host: versions.test, subset: two}}]}
  - {match: [{queryParams: {page: {exact: "2"}}}, {method: {exact: PUT}}], route: [{destination: {host: versions.test, subset: two}}]}
  - {match: [{authority: {prefix: north}}], redirect: {authority: south.branch.test, redirectCode: 307}}
  - {match: [{uri: {exact: /tea}}], directResponse: {status: 418}}
  - {match: [{uri: {exact: /empty}}], route: [{destination: {host: versions.test, subset: none}}]}
  - {match: [{uri: {exact: /lost}}], route: [{destination: {host: nowhere.test}}]}
  - {match: [{headers: {x-card: {exact: silver}}}], route: [{destination: {host: versions.test, subset: one}}]}
`;

const requests: fc.Arbitrary<HttpCall> = fc.record({
  host: fc.constantFrom(
    "loans.shop.svc.cluster.local",
    "LOANS.shop.svc.cluster.local:80",
    "loans",
    "north.branch.test",
    "east.branch.test",
    "branch.test",
    "versions.test",
    "other.test",
  ),
  path: fc.constantFrom(
    "/",
    "/a",
    "/A",
    "/a/",
    "/b/x",
    "/B/x",
    "/b",
    "/n12",
    "/n12x",
    "/tea",
    "/empty",
    "/lost",
    "/any?page=2",
    "/any?page=22",
    "/any?x=1&page=2",
  ),
  method: fc.constantFrom("GET", "GET", "PUT"),
  headers: fc.constantFrom<Record<string, string>>(
    {},
    { "x-card": "golden" },
    { "x-card": "silver" },
    { "x-test": "1" },
    { "x-test": "2", "x-card": "gold" },
  ),
});

const SAMPLE = 120;

/** What a client sees of an outcome: the names of the servers that may answer, or the status of the proxy's own answer. */
function seen(outcome: Outcome, servers: ReadonlyMap<string, string>): readonly string[] {
  if (outcome.kind === "forwarded") return outcome.endpoints.map(({ address }) => servers.get(address) ?? `status 503 from ${address}`);
  if (outcome.kind === "answered") return [`status ${outcome.status} ${outcome.location ?? ""}`.trim()];
  return [outcome.what === "virtual host" || outcome.what === "route" ? "status 404" : "status 503"];
}

it.for(["edge", "client"] as const)("the simulator says where real requests through %s go", async (name) => {
  const [one, two] = [await httpEcho("one"), await httpEcho("two")];
  const ports = { edge: await freePort(), service: await freePort(), one: one.port, two: two.port };
  const istiod = await startIstiod({
    files: { "conf/all.yaml": documents(ports), "mesh.yaml": "outboundTrafficPolicy: {mode: REGISTRY_ONLY}\n" },
  });
  const type = name === "edge" ? "router" : "sidecar";
  const address = "127.0.0.3";
  const proxy = await startProxy({ xdsPort: istiod.grpcPort, type, name, address, labels: { app: name } });
  const port = name === "edge" ? ports.edge : ports.service;
  await listening(port);

  const header = {
    mesh: { outboundTrafficPolicy: { mode: "REGISTRY_ONLY" } },
    proxies: [{ name, type, namespace: "shop", address, labels: { app: name }, INTERCEPTION_MODE: "NONE", WORKLOAD_IDENTITY: "none" }],
  };
  const mesh = meshFrom(`${JSON.stringify(header)}\n---\n${documents(ports)}`);
  const [simulated] = mesh.proxies;
  if (simulated === undefined) throw new Error("no proxy");
  const config = simConfig(await mesh.resources(simulated));
  const servers = new Map([one, two].map((server) => [`127.0.0.1:${server.port}`, server.name]));

  for (const request of fc.sample(requests, { numRuns: SAMPLE, seed: 1 })) {
    const answer = await call({
      port,
      host: request.host,
      path: request.path ?? "/",
      method: request.method ?? "GET",
      headers: request.headers ?? {},
    });
    const real = answer.by || `status ${answer.status} ${answer.headers.location ?? ""}`.trim();
    const outcome = simulate(config, { direction: "bound", address: "127.0.0.1", port, http: request });
    expect(seen(outcome, servers), `${JSON.stringify(request)}: ${JSON.stringify(outcome)}`).toContain(real);
  }
  await proxy.assertNothingRejected();
});
