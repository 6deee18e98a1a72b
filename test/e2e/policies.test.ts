import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { grpcAuthorizer } from "../support/authorizer.ts";
import { type Call, call, converse } from "../support/calls.ts";
import { tempDir } from "../support/cleanup.ts";
import { httpEcho, tcpEcho } from "../support/echo.ts";
import { startIstiod } from "../support/istiod.ts";
import { guardedGateway as gateway, POLICIES, policy, statusOf } from "../support/policies.ts";
import { freePort } from "../support/ports.ts";
import { listening, startProxy } from "../support/proxy.ts";
import { SHOP_HOST } from "../support/shop.ts";
import { eventually } from "../support/wait.ts";

/** A service that speaks bytes on a port of the gateway. */
const bytesBehindGateway = (port: number, server: number): string => `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: bytes, namespace: shop}
spec:
  hosts: [bytes.shop.svc.cluster.local]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 5000, name: tcp, protocol: TCP}]
  endpoints: [{address: 127.0.0.1, ports: {tcp: ${server}}}]
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: bytes, namespace: shop}
spec: {selector: {app: edge}, servers: [{port: {number: ${port}, name: tcp, protocol: TCP}, hosts: ["*"]}]}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: bytes, namespace: shop}
spec:
  hosts: ["*"]
  gateways: [shop/bytes]
  tcp: [{route: [{destination: {host: bytes.shop.svc.cluster.local}}]}]
`;

describe("who may call what", () => {
  it("is decided by address, host, method, path and header; the rest never reaches the server", async () => {
    const rules = `
  rules:
  - from: [{source: {ipBlocks: [127.0.0.0/8]}}]
    to: [{operation: {methods: [GET], paths: ["/open/*", /exact, "/users/{*}/orders"], hosts: [${SHOP_HOST}]}}]
  - when: [{key: "request.headers[x-team]", values: ["red-*"], notValues: [red-9]}]
    to: [{operation: {methods: [POST]}}]
  - from: [{source: {notIpBlocks: [127.0.0.0/8]}}]`;
    const shop = await gateway(policy("some", rules));
    const table: readonly [change: Partial<Call>, status: number][] = [
      [{ path: "/open/a" }, 200],
      [{ path: "/exact?query=1" }, 200],
      [{ path: "/users/7/orders" }, 200],
      [{ path: "/users/7/8/orders" }, 403],
      [{ path: "/exactly" }, 403],
      [{ path: "/openly" }, 403],
      [{ path: "/open/a", method: "DELETE" }, 403],
      [{ method: "POST", headers: { "x-team": "red-1" } }, 200],
      [{ method: "POST", headers: { "x-team": "red-9" } }, 403],
      [{ method: "POST", headers: { "x-team": "blue" } }, 403],
      [{ method: "POST" }, 403],
    ];
    for (const [change, status] of table) expect([change, await statusOf(shop, change)]).toEqual([change, status]);
    expect(shop.v1.hits).toHaveLength(table.filter(([, status]) => status === 200).length);
    expect((await call({ ...shop.target, path: "/closed" })).body).toBe("RBAC: access denied");
    await shop.proxy.assertNothingRejected();
  });

  it("is decided by all else that operations, sources and conditions may name, and audits decide nothing", async () => {
    const topology = "defaultConfig: {gatewayTopology: {numTrustedProxies: 1}}\n";
    const shop = await gateway(policy("nobody", "{}"), { "mesh.yaml": topology });
    const { port } = shop.target;
    const behind = (address: string): Partial<Call> => ({ headers: { "x-forwarded-for": address } });
    const [near, far] = [behind("203.0.113.7"), behind("198.51.100.7")];
    const operation = (fields: string): string => `to: [{operation: {${fields}}}]`;
    const source = (fields: string): string => `from: [{source: {${fields}}}]`;
    const when = (key: string, fields: string): string => `when: [{key: ${key}, ${fields}}]`;
    const cases: readonly [rule: string, allowed: readonly Partial<Call>[], refused: readonly Partial<Call>[]][] = [
      [operation("notMethods: [POST]"), [{}], [{ method: "POST" }]],
      [operation("notHosts: [other.test]"), [{}], []],
      [operation(`notHosts: [${SHOP_HOST}]`), [], [{}]],
      [operation('notPaths: ["/private/*"]'), [{ path: "/open" }], [{ path: "/private/a" }]],
      [operation(`ports: ["${port}"]`), [{}], []],
      [operation(`notPorts: ["${port}"]`), [], [{}]],
      [operation('paths: ["/a/{**}"]'), [{ path: "/a/b/c" }], [{ path: "/b/a/c" }]],
      [operation('paths: ["/a/{*}/c"]'), [{ path: "/a/b/c" }], [{ path: "/a/b/b/c" }, { path: "/a/c" }]],
      [operation('paths: ["*/c"]'), [{ path: "/a/b/c" }], [{ path: "/c/d" }]],
      [source("remoteIpBlocks: [203.0.113.0/24]"), [near], [far, {}]],
      [source("notRemoteIpBlocks: [203.0.113.0/24]"), [far], [near]],
      [source("ipBlocks: [203.0.113.0/24]"), [], [near]],
      [when("remote.ip", "values: [203.0.113.7]"), [near], [far]],
      [when("source.ip", "values: [127.0.0.1]"), [near, far], []],
      [when("destination.ip", "values: [127.0.0.0/8]"), [{}], []],
      [when("destination.ip", "notValues: [127.0.0.1]"), [], [{}]],
      [when("destination.port", `values: ["${port}"]`), [{}], []],
      [when("destination.port", `notValues: ["${port}"]`), [], [{}]],
    ];
    const allow = cases.map(([rule], index) => policy(`case-${index}`, `{rules: [{${one(rule, index)}}]}`)).join("");
    await shop.istiod.write(POLICIES, `${allow}${policy("audit", "{action: AUDIT, rules: [{}]}")}`);
    await eventually("the policies count", async () => (await statusOf(shop, { headers: { "x-case": "0" } })) === 200);
    for (const [index, [rule, ...changes]] of cases.entries())
      for (const [status, list] of [
        [200, changes[0]],
        [403, changes[1]],
      ] as const)
        for (const change of list) {
          const headers = { ...change.headers, "x-case": String(index) };
          expect([rule, change, await statusOf(shop, { ...change, headers })]).toEqual([rule, change, status]);
        }
    expect(await statusOf(shop)).toBe(403);
    await shop.proxy.assertNothingRejected();

    /** A rule for requests of one case. */
    function one(rule: string, index: number): string {
      const isCase = `{key: "request.headers[x-case]", values: ["${index}"]}`;
      return rule.startsWith("when") ? rule.replace("when: [", `when: [${isCase}, `) : `${rule}, when: [${isCase}]`;
    }
  });

  it("follows a changed policy, and denies before it allows", async () => {
    const shop = await gateway(policy("allow", "{rules: [{to: [{operation: {methods: [GET]}}]}]}"));
    expect(await statusOf(shop)).toBe(200);
    const deny = policy("deny", "{action: DENY, rules: [{to: [{operation: {paths: [/]}}]}]}");
    await shop.istiod.write(POLICIES, policy("allow", "{rules: [{}]}") + deny);
    await eventually("the denial is in force", async () => (await statusOf(shop)) === 403);
    expect(await statusOf(shop, { method: "POST", path: "/x" })).toBe(200);
    await shop.istiod.write(POLICIES, policy("nobody", "{}"));
    await eventually("nobody is let in", async () => (await statusOf(shop, { path: "/x" })) === 403);
    await shop.istiod.remove(POLICIES);
    await eventually("everybody is let in", async () => (await statusOf(shop)) === 200);
  });

  it("is only noted in a dry run", async () => {
    const annotated = policy("try", "{action: DENY, rules: [{}]}").replace("shop}", 'shop, annotations: {istio.io/dry-run: "true"}}');
    const shop = await gateway(annotated);
    expect(await statusOf(shop)).toBe(200);
    const stats = await shop.proxy.admin("/stats?filter=istio_dry_run_deny_");
    expect(stats).toMatch(/shadow_denied: 1/);
  });

  it("is decided for connections too, by what connections have", async () => {
    const echo = await tcpEcho("bytes");
    const port = await freePort();
    const allow = policy("allow", `{rules: [{from: [{source: {ipBlocks: [127.0.0.1]}}], to: [{operation: {ports: ["${port}"]}}]}]}`);
    const istiod = await startIstiod({ files: { "conf/bytes.yaml": bytesBehindGateway(port, echo.port), [POLICIES]: allow } });
    await startProxy({ type: "router", name: "edge", address: "127.0.0.3", labels: { app: "edge" }, xdsPort: istiod.grpcPort });
    await listening(port);
    // Envoy decides on the first bytes of the client: what a server says before is heard, what the client says never arrives.
    const echoed = (): Promise<readonly string[]> => converse({ port, say: "hello\n", lines: 2 });
    expect(await echoed()).toEqual(["bytes", "hello"]);
    const denials = [
      policy("allow", "{rules: [{from: [{source: {ipBlocks: [192.0.2.1]}}]}]}"),
      policy("deny", "{action: DENY, rules: [{to: [{operation: {methods: [GET]}}]}]}"),
    ];
    for (const denial of denials) {
      await istiod.write(POLICIES, allow);
      await eventually("connections are let in", async () => (await echoed()).length === 2);
      await istiod.write(POLICIES, denial);
      await eventually("connections are refused", () =>
        echoed().then(
          () => false,
          () => true,
        ),
      );
    }
  });
});

describe("a workload's own proxy", () => {
  it("decides on what comes in, and the log says which rule it was", async () => {
    const app = await httpEcho("app");
    const port = await freePort();
    const log = join(await tempDir(), "access.log");
    const sidecar = `
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {name: app, namespace: shop}
spec:
  ingress: [{port: {number: ${port}, name: http, protocol: HTTP}, bind: 127.0.0.1, defaultEndpoint: "127.0.0.1:${app.port}"}]
`;
    const deny = policy(
      "no-secrets",
      "{selector: {matchLabels: {app: app}}, action: DENY, rules: [{to: [{operation: {methods: [PUT]}}]}, {to: [{operation: {paths: [/secret]}}]}]}",
    );
    const istiod = await startIstiod({ files: { "mesh.yaml": `accessLogFile: ${log}\n`, "conf/app.yaml": sidecar, [POLICIES]: deny } });
    await startProxy({ name: "app", address: "127.0.0.1", labels: { app: "app" }, xdsPort: istiod.grpcPort });
    await listening(port);
    const target = { port, host: "app" };
    expect((await call(target)).by).toBe("app");
    expect((await call({ ...target, path: "/secret" })).status).toBe(403);
    expect(app.hits.map(({ url }) => url)).toEqual(["/"]);
    await eventually("the denial is logged", async () =>
      (await readFile(log, "utf8")).includes("rbac_access_denied_matched_policy[ns[shop]-policy[no-secrets]-rule[1]]"),
    );
  });
});

describe("an external authorizer", () => {
  const CUSTOM = policy("ask", '{action: CUSTOM, provider: {name: ask}, rules: [{to: [{operation: {paths: ["/private/*"]}}]}]}');
  const mesh = (extra = ""): string => `
extensionProviders:
- name: ask
  envoyExtAuthzHttp: {service: ask.shop.svc.cluster.local, port: 9001, pathPrefix: /check, includeRequestHeadersInCheck: [x-user], headersToUpstreamOnAllow: [x-checked]${extra}}
`;
  const service = (port: number): string => `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: ask, namespace: shop}
spec:
  hosts: [ask.shop.svc.cluster.local]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 9001, name: http, protocol: HTTP}]
  endpoints: [{address: 127.0.0.1, ports: {http: ${port}}}]
`;

  it("is asked about the requests its policy names, and its word counts", async () => {
    const ask = await httpEcho("ask", { status: () => (ask.hits.at(-1)?.headers["x-user"] === "alice" ? 200 : 403) });
    const shop = await gateway(CUSTOM, { "mesh.yaml": mesh(), "conf/ask.yaml": service(ask.port) });
    expect(await statusOf(shop, { path: "/public" })).toBe(200);
    expect(ask.hits).toHaveLength(0);
    expect(await statusOf(shop, { path: "/private/a", headers: { "x-user": "mallory" } })).toBe(403);
    expect(await statusOf(shop, { path: "/private/a", headers: { "x-user": "alice" } })).toBe(200);
    expect(ask.hits.map(({ url }) => url)).toEqual(["/check/private/a", "/check/private/a"]);
    expect(shop.v1.hits.map(({ url }) => url)).toEqual(["/public", "/private/a"]);
  });

  it("that does not answer refuses, or lets pass where the provider says so", async () => {
    const nobody = await freePort();
    const shop = await gateway(CUSTOM, { "mesh.yaml": mesh(', statusOnError: "503"'), "conf/ask.yaml": service(nobody) });
    expect(await statusOf(shop, { path: "/private/a" })).toBe(503);
    await shop.istiod.write("mesh.yaml", mesh(", failOpen: true"));
    await eventually("requests pass", async () => (await statusOf(shop, { path: "/private/a" })) === 200);
  });

  it("is asked over gRPC about requests and about connections", async () => {
    const ask = await grpcAuthorizer("open sesame");
    const port = await freePort();
    const files = {
      "mesh.yaml": "extensionProviders: [{name: ask, envoyExtAuthzGrpc: {service: ask.shop.svc.cluster.local, port: 9001, timeout: 5s}}]\n",
      "conf/ask.yaml": service(ask.port).replace("protocol: HTTP", "protocol: GRPC"),
      "conf/bytes.yaml": bytesBehindGateway(port, (await tcpEcho("bytes")).port),
    };
    const shop = await gateway(CUSTOM, files);
    // Whoever connects to see whether it listens would be asked about.
    await eventually("it listens for connections", async () => (await shop.proxy.admin("/listeners")).includes(`:${port}`));
    expect(await statusOf(shop, { path: "/private/a" })).toBe(403);
    expect(await statusOf(shop, { path: "/private/a", headers: { "x-word": "open sesame" } })).toBe(200);
    expect(await statusOf(shop, { path: "/public" })).toBe(200);
    expect(ask.asked()).toBe(2);
    // A path says nothing of a connection: all are asked about, and here all are refused.
    await expect(converse({ port, say: "hello\n", lines: 2 })).rejects.toThrow("ended");
    expect(ask.asked()).toBe(3);
  });

  it("that is not configured refuses what it should decide, and nothing else", async () => {
    const shop = await gateway(CUSTOM);
    expect(await statusOf(shop, { path: "/private/a" })).toBe(403);
    expect(await statusOf(shop, { path: "/public" })).toBe(200);
  });
});
