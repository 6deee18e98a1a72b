import { describe, expect, it } from "vitest";
import { call, converse } from "../support/calls.ts";
import { httpEcho, tcpEcho } from "../support/echo.ts";
import { startIstiod } from "../support/istiod.ts";
import { freePort } from "../support/ports.ts";
import { listening, startProxy } from "../support/proxy.ts";
import { eventually } from "../support/wait.ts";

interface Shown {
  readonly object: { readonly kind: string; readonly namespace: string; readonly name: string } | string;
  readonly path: string;
  readonly code: string;
  readonly message: string;
}

describe("configuration that is wrong beside itself", () => {
  it("is told once, with object and field, in the log and on the page, and the rest of it works", async () => {
    const [v1, db] = [await httpEcho("v1"), await tcpEcho("db")];
    const [port, dbPort, edge] = [await freePort(), await freePort(), await freePort()];
    const entry = (
      name: string,
      created: string,
      { number, server, protocol }: { readonly number: number; readonly server: number; readonly protocol: string },
    ): string => `
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: ${name}, namespace: shop, creationTimestamp: "${created}"}
spec:
  hosts: [${name}.test]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: ${number}, name: main, protocol: ${protocol}}]
  endpoints: [{address: 127.0.0.1, ports: {main: ${server}}}]
`;
    const services =
      entry("web", "2026-01-01T00:00:00Z", { number: port, server: v1.port, protocol: "HTTP" }) +
      entry("db", "2026-01-01T00:00:00Z", { number: dbPort, server: db.port, protocol: "TCP" }) +
      entry("db-too", "2026-02-01T00:00:00Z", { number: dbPort, server: 1, protocol: "TCP" });
    const wrong = `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web, namespace: shop, creationTimestamp: "2026-01-01T00:00:00Z"}
spec:
  hosts: [web.test]
  gateways: [mesh, gone]
  http:
  - {match: [{uri: {prefix: /host}}], route: [{destination: {host: nobody.test}}]}
  - {match: [{uri: {prefix: /subset}}], route: [{destination: {host: web.test, subset: v9}}]}
  - {match: [{uri: {prefix: /delegate}}], delegate: {name: gone}}
  - {match: [{uri: {prefix: /good}}], rewrite: {uri: /rewritten}, route: [{destination: {host: web.test}}]}
  - {route: [{destination: {host: web.test}, weight: 3}, {destination: {host: web.test}, weight: 4}]}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: rival, namespace: shop, creationTimestamp: "2026-02-01T00:00:00Z"}
spec: {hosts: [web.test], http: [{directResponse: {status: 418}}]}
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge, namespace: shop, creationTimestamp: "2026-01-01T00:00:00Z"}
spec:
  selector: {app: edge}
  servers:
  - {port: {number: ${edge}, name: one, protocol: TLS}, hosts: [a.test, b.test], tls: {mode: PASSTHROUGH}}
  - {port: {number: ${edge}, name: two, protocol: TLS}, hosts: [b.test], tls: {mode: PASSTHROUGH}}
  - {port: {number: 8080, name: plain, protocol: HTTP}, hosts: ["*"]}
  - {port: {number: 8080, name: three, protocol: TCP}, hosts: ["*"]}
  - {port: {number: 8444, name: four, protocol: HTTPS}, hosts: [c.test], tls: {mode: SIMPLE, credentialName: no-secret}}
`;
    const istiod = await startIstiod({ files: { "conf/services.yaml": services, "conf/wrong.yaml": wrong } });
    const proxy = await startProxy({ xdsPort: istiod.grpcPort, name: "client", address: "127.0.0.9" });
    await listening(port);
    await listening(dbPort);

    const expected: readonly (readonly [code: string, object: string, path: string])[] = [
      ["reference.gateway", "VirtualService/shop/web", "spec.gateways[1]"],
      ["reference.delegate", "VirtualService/shop/web", "spec.http[2].delegate"],
      ["reference.host", "VirtualService/shop/web", "spec.http[0].route[0].destination.host"],
      ["reference.subset", "VirtualService/shop/web", "spec.http[1].route[0].destination.subset"],
      ["conflict.host", "VirtualService/shop/rival", "spec.hosts[0]"],
      ["conflict.sni", "Gateway/shop/edge", "spec.servers[1].hosts[0]"],
      ["conflict.port", "Gateway/shop/edge", "spec.servers[3].port"],
      ["reference.secret", "Gateway/shop/edge", "spec.servers[4].tls.credentialName"],
      ["conflict.port", "ServiceEntry/shop/db-too", "spec.ports[0]"],
    ];
    await eventually("all of them are shown", async () => {
      const shown = (await (await istiod.debug("/debug/problems")).json()) as readonly Shown[];
      const asText = shown.map(
        ({ code, path, object }) =>
          `${code} ${typeof object === "string" ? object : `${object.kind}/${object.namespace}/${object.name}`} ${path}`,
      );
      expect(asText.sort()).toEqual(expected.map((one) => one.join(" ")).sort());
      return true;
    });
    await eventually("all of them are logged", () => expected.every(([, object, path]) => logged(istiod.log(), object, path) === 1));

    expect((await call({ port, host: "web.test", path: "/good/x" })).by).toBe("v1");
    expect(v1.hits.at(-1)?.url).toBe("/rewritten/x");
    expect((await call({ port, host: "web.test" })).by).toBe("v1");
    expect((await call({ port, host: "web.test", path: "/subset" })).status).toBe(503);
    expect(await converse({ port: dbPort, lines: 1 })).toEqual(["db"]);

    await istiod.write("conf/wrong.yaml", wrong.replace("/rewritten", "/again"));
    await eventually("the edit is in force", async () => {
      await call({ port, host: "web.test", path: "/good/x" });
      return v1.hits.at(-1)?.url === "/again/x";
    });
    for (const [, object, path] of expected) expect(logged(istiod.log(), object, path)).toBe(1);
    await istiod.remove("conf/wrong.yaml");
    await eventually(
      "nothing but the port is left",
      async () => ((await (await istiod.debug("/debug/problems")).json()) as readonly Shown[]).length === 1,
    );
    await proxy.assertNothingRejected();
  });
});

describe("configuration that is wrong by itself", () => {
  it("is told once, with object and field, and the rest works", async () => {
    const v1 = await httpEcho("v1");
    const port = await freePort();
    const service = (ports: string): string => `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: web, namespace: shop}
spec:
  hosts: [web.test]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [${ports}]
  endpoints: [{address: 127.0.0.1, ports: {main: ${v1.port}}}]
`;
    const rule = (name: string, http: string): string => `
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: ${name}, namespace: shop}
spec: {hosts: [${name}.test], http: [${http}]}
`;
    const route = "route: [{destination: {host: web.test}}]";
    const wrong =
      rule("lookahead", `{match: [{uri: {regex: "(?=a)b"}}], ${route}}`) +
      rule("huge", `{match: [{uri: {regex: "${"a{1000}".repeat(60)}"}}], ${route}}`) +
      rule("negative", "{route: [{destination: {host: web.test}, weight: -1}]}") +
      rule("weightless", "{route: [{destination: {host: web.test}, weight: 0}, {destination: {host: web.test}, weight: 0}]}") +
      rule("good", `{match: [{uri: {regex: "/v[0-9]+"}}], ${route}}, {directResponse: {status: 418}}`);
    const istiod = await startIstiod({
      files: {
        "conf/service.yaml": service(`{number: ${port}, name: main, protocol: HTTP}, {number: 53, name: dns, protocol: UDP}`),
        "conf/wrong.yaml": wrong,
      },
    });
    const proxy = await startProxy({ xdsPort: istiod.grpcPort, name: "client", address: "127.0.0.9" });
    await listening(port);
    const expected: readonly (readonly [object: string, path: string])[] = [
      ["VirtualService/shop/lookahead", "spec.http[0].match[0].uri.regex"],
      ["VirtualService/shop/huge", "spec.http[0].match[0].uri.regex"],
      ["VirtualService/shop/negative", "spec.http[0].route[0].weight"],
      ["VirtualService/shop/weightless", "spec.http[0].route"],
      ["ServiceEntry/shop/web", "spec.ports[1].protocol"],
    ];
    await eventually("all of them are logged", () => expected.every(([object, path]) => logged(istiod.log(), object, path) === 1));
    const shown = (await (await istiod.debug("/debug/problems")).json()) as readonly Shown[];
    expect(shown).toHaveLength(expected.length);
    expect((await call({ port, host: "web.test" })).by).toBe("v1");
    expect((await call({ port, host: "good.test", path: "/v12" })).status).not.toBe(418);
    await proxy.assertNothingRejected();
  });
});

const logged = (log: string, object: string, path: string): number =>
  log.split("\n").filter((line) => line.includes(object) && line.includes(`${path}:`)).length;

describe("a document whose name cannot be read", () => {
  it("is told with line and field, as others are", async () => {
    const head = "apiVersion: networking.istio.io/v1\nkind: DestinationRule\n";
    const text = [
      `${head}metadata: {name: good}\nspec: {host: a.test}\n`,
      `${head}spec: {host: a.test}\nmetadata: {name: yes}\n`,
      `${head}spec: {host: b.test}\nmetadata:\n  labels: {a: b}\n  name: [c]\n`,
    ].join("---\n");
    const istiod = await startIstiod({ files: { "conf/shop/all.yaml": text } });
    const told = await eventually("both are in the log", () => {
      const lines = istiod
        .log()
        .split("\n")
        .filter((line) => line.includes("a document is invalid"));
      return lines.length === 2 ? lines : undefined;
    });
    expect(told[0]).toMatch(/object=\S*all.yaml:6\b.*all.yaml:9\b.*metadata\.name: must be a text, not a boolean/);
    expect(told[1]).toMatch(/object=\S*all.yaml:11\b.*all.yaml:16\b.*metadata\.name: must be a text/);
  });
});
