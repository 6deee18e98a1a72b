import { describe, expect, it } from "vitest";
import { call, converse } from "../support/calls.ts";
import { httpEcho, tcpEcho } from "../support/echo.ts";
import { startIstiod } from "../support/istiod.ts";
import { freePort } from "../support/ports.ts";
import { listening, startProxy } from "../support/proxy.ts";
import { eventually } from "../support/wait.ts";

interface Server {
  readonly port: number;
  readonly draining?: boolean;
}

const service = (
  name: string,
  label: string,
  { port, servers }: { readonly port: number; readonly servers: readonly Server[] },
): string => `
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: ${name}, namespace: shop, labels: {${label}}}
spec:
  hosts: [${name}.example.com]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: ${port}, name: http, protocol: HTTP}]
  endpoints: [${servers
    .map((one) => `{address: 127.0.0.1, ports: {http: ${one.port}}, labels: {${one.draining ? 'istio.io/draining: "yes"' : ""}}}`)
    .join(", ")}]
`;

const COOKIE = '"istio.io/persistent-session": "stick:/"';
const HEADER = '"istio.io/persistent-session-header": x-stick';

describe("sessions", () => {
  it("keep clients at the server that answered them first, also while it drains", async () => {
    const [a, b] = [await httpEcho("a"), await httpEcho("b")];
    const port = await freePort();
    const config = (draining: boolean): string => {
      const servers = [{ port: a.port }, { port: b.port, draining }];
      return (
        service("cookie", COOKIE, { port, servers }) +
        service("header", HEADER, { port, servers }) +
        service("plain", "", { port, servers })
      );
    };
    const istiod = await startIstiod({
      files: { "conf/all.yaml": config(false) },
      env: { PILOT_ENABLE_PERSISTENT_SESSION_FILTER: "true" },
    });
    const proxy = await startProxy({ xdsPort: istiod.grpcPort, name: "client", address: "127.0.0.9" });
    await listening(port);

    /** Calls until `by` answers, and gives what leads back to it. */
    const sessionWith = (by: string, host: string, carrier: "set-cookie" | "x-stick"): Promise<string> =>
      eventually(`${by} answers for ${host}`, async () => {
        const answer = await call({ port, host });
        const [sign] = [answer.headers[carrier] ?? []].flat();
        return answer.by === by && sign?.split(";", 1)[0];
      });
    const cookies = {
      a: await sessionWith("a", "cookie.example.com", "set-cookie"),
      b: await sessionWith("b", "cookie.example.com", "set-cookie"),
    };
    const headers = {
      a: await sessionWith("a", "header.example.com", "x-stick"),
      b: await sessionWith("b", "header.example.com", "x-stick"),
    };
    const keptAt = async (by: "a" | "b"): Promise<void> => {
      for (let made = 0; made < 6; made++) {
        expect((await call({ port, host: "cookie.example.com", headers: { cookie: cookies[by] } })).by).toBe(by);
        expect((await call({ port, host: "header.example.com", headers: { "x-stick": headers[by] } })).by).toBe(by);
      }
    };
    await keptAt("a");
    await keptAt("b");

    await istiod.write("conf/all.yaml", config(true));
    await eventually("nobody new is sent to b", async () => {
      const names = await Promise.all(Array.from({ length: 40 }, async () => (await call({ port, host: "cookie.example.com" })).by));
      return names.every((by) => by === "a");
    });
    await keptAt("a");
    await keptAt("b");
    const plain = await Promise.all(Array.from({ length: 12 }, async () => (await call({ port, host: "plain.example.com" })).by));
    expect(new Set(plain)).toEqual(new Set(["a"]));
    expect((await call({ port, host: "plain.example.com" })).headers).not.toHaveProperty("set-cookie");
    await proxy.assertNothingRejected();
  });
});

/** A Service of Kubernetes with servers at addresses of loopback behind it, all at one port. */
const affine = (name: string, port: number, target: number): string => `
---
apiVersion: v1
kind: Service
metadata: {name: ${name}, namespace: shop}
spec:
  sessionAffinity: ClientIP
  sessionAffinityConfig: {clientIP: {timeoutSeconds: 600}}
  ports: [{name: ${name}, port: ${port}}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: ${name}-1, namespace: shop, labels: {kubernetes.io/service-name: ${name}}}
addressType: IPv4
ports: [{name: ${name}, port: ${target}}]
endpoints: [${SERVERS.map(({ host }) => `{addresses: [${host}]}`).join(", ")}]
`;

const SERVERS = ["a", "b", "c"].map((name, index) => ({ name, host: `127.0.4.${index + 1}` }));

describe("a Service with session affinity", () => {
  // So many that one of three servers is left out less than once in ten thousand million runs; and no multiple of three, or servers that take turns would
  // answer every round alike.
  const clients = Array.from({ length: 64 }, (_, index) => `127.0.3.${index + 1}`);

  it("keeps each client at one server, through sidecars and gateways, unless a DestinationRule chooses otherwise", async () => {
    const [port, edge, target] = [await freePort(), await freePort(), await freePort()];
    for (const { name, host } of SERVERS) await httpEcho(name, { host, port: target });
    const gateway = `
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge, namespace: shop}
spec: {selector: {app: edge}, servers: [{port: {number: ${edge}, name: http, protocol: HTTP}, hosts: ["*"]}]}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: edge, namespace: shop}
spec: {hosts: [edge.test], gateways: [edge], http: [{route: [{destination: {host: http.shop.svc.cluster.local, port: {number: ${port}}}}]}]}
`;
    const rule = (balancer: string): string =>
      `{apiVersion: networking.istio.io/v1, kind: DestinationRule, metadata: {name: http, namespace: shop}, spec: {host: http.shop.svc.cluster.local, trafficPolicy: {loadBalancer: {${balancer}}}}}\n`;
    const istiod = await startIstiod({ files: { "conf/all.yaml": affine("http", port, target) + gateway } });
    const proxies = await Promise.all([
      startProxy({ xdsPort: istiod.grpcPort, name: "client", address: "127.0.0.9" }),
      startProxy({ xdsPort: istiod.grpcPort, type: "router", name: "edge", address: "127.0.0.8", labels: { app: "edge" } }),
    ]);
    const places = [
      { port, host: "http.shop.svc.cluster.local" },
      { port: edge, host: "edge.test" },
    ];
    await Promise.all(places.map((place) => listening(place.port)));
    /** Who answers each of the clients, asked one after another. */
    const round = async (place: (typeof places)[number]): Promise<readonly string[]> => {
      const answers: string[] = [];
      for (const from of clients) answers.push((await call({ ...place, from })).by);
      return answers;
    };
    const keeps = async (place: (typeof places)[number]): Promise<boolean> => {
      const first = await round(place);
      return new Set(first).size === SERVERS.length && `${await round(place)}` === `${first}`;
    };
    const takeTurns = async (place: (typeof places)[number]): Promise<boolean> => {
      const served = new Set<string>();
      for (const _ of SERVERS) served.add((await call({ ...place, from: clients[0] ?? "" })).by);
      return served.size === SERVERS.length;
    };
    for (const place of places) await eventually("clients are kept", () => keeps(place));
    await istiod.write("conf/rule.yaml", rule("simple: ROUND_ROBIN"));
    for (const place of places) await eventually("servers take turns whoever calls", () => takeTurns(place));
    await istiod.write("conf/rule.yaml", rule("localityLbSetting: {enabled: false}"));
    for (const place of places) await eventually("clients are kept beside a rule that chooses nothing", () => keeps(place));
    await istiod.write("conf/rule.yaml", rule("simple: ROUND_ROBIN"));
    for (const place of places) await eventually("servers take turns again", () => takeTurns(place));
    await istiod.remove("conf/rule.yaml");
    for (const place of places) await eventually("clients are kept once the rule is gone", () => keeps(place));
    for (const proxy of proxies) await proxy.assertNothingRejected();
  });

  it("keeps connections of a client at one server where the port carries bytes", async () => {
    const [port, target] = [await freePort(), await freePort()];
    for (const { name, host } of SERVERS) await tcpEcho(name, { host, port: target });
    const istiod = await startIstiod({ files: { "conf/all.yaml": affine("tcp", port, target) } });
    const proxy = await startProxy({ xdsPort: istiod.grpcPort, name: "client", address: "127.0.0.9" });
    await listening(port);
    const round = async (): Promise<readonly string[]> => {
      const greetings: string[] = [];
      for (const from of clients) greetings.push(...(await converse({ port, from, lines: 1 })));
      return greetings;
    };
    const first = await round();
    expect(new Set(first).size).toBe(SERVERS.length);
    expect(await round()).toEqual(first);
    await proxy.assertNothingRejected();
  });
});
