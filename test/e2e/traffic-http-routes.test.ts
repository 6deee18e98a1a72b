import { createHash } from "node:crypto";
import { createServer } from "node:http";
import { connect } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { call, tally } from "../support/calls.ts";
import { freePort } from "../support/ports.ts";
import { rule, SHOP_HOST } from "../support/shop.ts";
import { startShop } from "../support/shop-mesh.ts";
import { eventually } from "../support/wait.ts";

/** A rule that marks its answers, so that a test sees which one took a request. */
const marked = (name: string, ...fields: readonly string[]): string =>
  rule("v1", `headers: {response: {set: {x-rule: ${name}}}}`, ...fields);

describe("matches", () => {
  it("tell requests apart by path, method, host, headers and query", async () => {
    const http = [
      marked("exact", "match: [{uri: {exact: /exact}}]"),
      marked("any-case", "match: [{uri: {prefix: /MiXed/}, ignoreUriCase: true}]"),
      marked("regex", 'match: [{uri: {regex: "/item/[0-9]{2,3}"}}]'),
      marked("method", "match: [{method: {exact: DELETE}}]"),
      marked("host", "match: [{authority: {prefix: cart.shop.svc}, headers: {x-by: {exact: host}}}]"),
      marked("both", "match: [{headers: {x-a: {exact: '1'}, x-b: {prefix: good}}}]"),
      marked("present", "match: [{headers: {x-present: {}}}]"),
      marked("header-regex", 'match: [{headers: {x-version: {regex: "v[0-9]+"}}}]'),
      marked("query", 'match: [{queryParams: {kind: {exact: big}, id: {regex: "[0-9]+"}}}]'),
      marked("either", "match: [{uri: {exact: /one}}, {uri: {exact: /two}}]"),
      marked("without", "match: [{uri: {prefix: /open}, withoutHeaders: {x-debug: {exact: '1'}, x-secret: {}}}]"),
      marked("rest"),
    ].join("");
    const { target, proxy } = await startShop({ http });
    const ruleOf = async (
      request: Partial<typeof target> & { readonly path?: string; readonly method?: string; readonly headers?: Record<string, string> },
    ) => (await call({ ...target, ...request })).headers["x-rule"];
    expect(await ruleOf({ path: "/exact?x=1" })).toBe("exact");
    expect(await ruleOf({ path: "/exact/more" })).toBe("rest");
    expect(await ruleOf({ path: "/mixeD/a" })).toBe("any-case");
    expect(await ruleOf({ path: "/item/123" })).toBe("regex");
    expect(await ruleOf({ path: "/item/1234" })).toBe("rest");
    expect(await ruleOf({ method: "DELETE" })).toBe("method");
    expect(await ruleOf({ headers: { "x-by": "host" } })).toBe("host");
    expect(await ruleOf({ headers: { "x-a": "1", "x-b": "good enough" } })).toBe("both");
    expect(await ruleOf({ headers: { "x-a": "1" } })).toBe("rest");
    expect(await ruleOf({ headers: { "x-present": "" } })).toBe("present");
    expect(await ruleOf({ headers: { "x-version": "v12" } })).toBe("header-regex");
    expect(await ruleOf({ headers: { "x-version": "v12-beta" } })).toBe("rest");
    expect(await ruleOf({ path: "/?kind=big&id=7" })).toBe("query");
    expect(await ruleOf({ path: "/?kind=big&id=x" })).toBe("rest");
    expect([await ruleOf({ path: "/one" }), await ruleOf({ path: "/two" })]).toEqual(["either", "either"]);
    expect(await ruleOf({ path: "/open" })).toBe("without");
    expect(await ruleOf({ path: "/open", headers: { "x-debug": "2" } })).toBe("without");
    expect(await ruleOf({ path: "/open", headers: { "x-debug": "1" } })).toBe("rest");
    expect(await ruleOf({ path: "/open", headers: { "x-secret": "" } })).toBe("rest");
    await proxy.assertNothingRejected();
  });
});

describe("what rules do to requests and answers", () => {
  it("sets, adds and removes headers, for a rule and for a destination", async () => {
    const http = `
  - headers:
      request: {set: {x-set: mesh, x-typo: "%SPEED(%s)%, 100%%", host: inner.example.com}, add: {x-added: rule}, remove: [x-gone]}
      response: {set: {x-served-by: hidden}, add: {x-note: rule}, remove: [content-type]}
    route:
    - destination: {host: ${SHOP_HOST}, subset: v1}
      headers: {request: {add: {x-added: destination}}, response: {add: {x-note: destination}}}`;
    const { target, v1, proxy } = await startShop({ http });
    const answer = await call({
      ...target,
      headers: { "x-set": "client", "x-typo": "client", "x-added": "client", "x-gone": "1", "x-kept": "1" },
    });
    const [hit] = v1.hits;
    expect(hit?.headers).toMatchObject({
      host: "inner.example.com",
      "x-set": "mesh",
      "x-typo": "%SPEED(%s)%, 100%",
      "x-added": "client, rule, destination",
      "x-kept": "1",
    });
    expect(hit?.headers["x-gone"]).toBeUndefined();
    expect(answer.headers).toMatchObject({ "x-served-by": "hidden", "x-note": "rule, destination" });
    expect(answer.headers["content-type"]).toBeUndefined();
    await proxy.assertNothingRejected();
  });

  it("rewrites paths by prefix and by regular expression", async () => {
    const http = [
      rule("v1", "match: [{uri: {prefix: /api/v1/}}]", "rewrite: {uri: /}"),
      rule(
        "v1",
        "match: [{uri: {prefix: /user/}}]",
        'rewrite: {uriRegexRewrite: {match: "/user/([^/]+)/(.*)", rewrite: "/\\\\2?user=\\\\1"}}',
      ),
      rule("v1"),
    ].join("");
    const { target, v1 } = await startShop({ http });
    await call({ ...target, path: "/api/v1/items?x=1" });
    await call({ ...target, path: "/user/ann/cart" });
    expect(v1.hits.map(({ url }) => url)).toEqual(["/items?x=1", "/cart?user=ann"]);
  });

  it("answers by itself: redirects of all kinds, and texts", async () => {
    const redirect = (match: string, fields: string): string => `\n  - match: [{uri: {exact: ${match}}}]\n    redirect: ${fields}`;
    const http = [
      redirect("/moved", "{uri: /new}"),
      redirect("/see", "{authority: other.example.com, redirectCode: 303}"),
      redirect("/secure", "{scheme: https, port: 8443, redirectCode: 307}"),
      redirect("/same-port", "{uri: /x, derivePort: FROM_REQUEST_PORT, redirectCode: 308}"),
      '\n  - match: [{uri: {exact: /teapot}}]\n    directResponse: {status: 418, body: {string: "short and stout"}}\n    headers: {response: {set: {x-kind: tea}}}',
      '\n  - match: [{uri: {exact: /bytes}}]\n    directResponse: {status: 200, body: {bytes: "aGVsbG8="}}',
      rule("v1"),
    ].join("");
    const { target, v1, proxy } = await startShop({ http });
    const at = async (path: string) => {
      const { status, headers } = await call({ ...target, path });
      return [status, headers.location];
    };
    expect(await at("/moved")).toEqual([301, `http://${SHOP_HOST}/new`]);
    expect(await at("/see")).toEqual([303, "http://other.example.com/see"]);
    expect(await at("/secure")).toEqual([307, `https://${SHOP_HOST}:8443/secure`]);
    expect(await at("/same-port")).toEqual([308, `http://${SHOP_HOST}:${target.port}/x`]);
    const tea = await call({ ...target, path: "/teapot" });
    expect([tea.status, tea.body, tea.headers["x-kind"]]).toEqual([418, "short and stout", "tea"]);
    expect((await call({ ...target, path: "/bytes" })).body).toBe("hello");
    expect(v1.hits).toHaveLength(0);
    await proxy.assertNothingRejected();
  });

  it("answers preflights by the CORS policy, and passes on those that do not match", async () => {
    const cors = (extra: string): string =>
      `corsPolicy: {allowOrigins: [{exact: "https://shop.example.com"}, {regex: "https://[a-z]+[.]partner[.]com"}], allowMethods: [GET, PUT], allowHeaders: [x-token], exposeHeaders: [x-total], maxAge: 1h, allowCredentials: true${extra}}`;
    const http = [rule("v1", "match: [{uri: {prefix: /strict}}]", cors(", unmatchedPreflights: IGNORE")), rule("v1", cors(""))].join("");
    const { target, v1 } = await startShop({ http });
    const preflight = (origin: string, path = "/") =>
      call({ ...target, path, method: "OPTIONS", headers: { origin, "access-control-request-method": "PUT" } });
    const allowed = await preflight("https://shop.example.com");
    expect(allowed.status).toBe(200);
    expect(allowed.headers).toMatchObject({
      "access-control-allow-origin": "https://shop.example.com",
      "access-control-allow-methods": "GET,PUT",
      "access-control-allow-headers": "x-token",
      "access-control-max-age": "3600",
      "access-control-allow-credentials": "true",
    });
    expect((await preflight("https://eu.partner.com")).headers["access-control-allow-origin"]).toBe("https://eu.partner.com");
    expect(v1.hits).toHaveLength(0);
    const stranger = await preflight("https://evil.example.com");
    expect([stranger.by, stranger.headers["access-control-allow-origin"]]).toEqual(["v1", undefined]);
    const refused = await preflight("https://evil.example.com", "/strict");
    expect([refused.by, refused.headers["access-control-allow-origin"]]).toEqual(["", undefined]);
    const simple = await call({ ...target, headers: { origin: "https://shop.example.com" } });
    expect(simple.headers).toMatchObject({
      "access-control-allow-origin": "https://shop.example.com",
      "access-control-expose-headers": "x-total",
    });
  });

  it("mirrors to several destinations, each with its share", async () => {
    const mirrors = (share: number): string => `mirrors: [{destination: {host: ${SHOP_HOST}, subset: v2}, percentage: {value: ${share}}}]`;
    const http = [
      rule("v1", "match: [{uri: {prefix: /all}}]", mirrors(100)),
      rule("v1", "match: [{uri: {prefix: /none}}]", mirrors(0)),
      rule("v1", "match: [{uri: {prefix: /half}}]", mirrors(50)),
    ].join("");
    const { target, v1, v2 } = await startShop({ http });
    expect(await tally(20, { ...target, path: "/all" })).toEqual({ v1: 20 });
    await eventually("all copies arrive", () => v2.hits.length === 20);
    expect(v2.hits[0]?.headers.host).toBe(SHOP_HOST);
    await tally(20, { ...target, path: "/none" });
    await tally(200, { ...target, path: "/half" });
    await eventually("v1 has all", () => v1.hits.length === 240);
    await eventually("about half of the copies arrive", () => v2.hits.length > 20 + 45);
    expect(v2.hits.length).toBeLessThan(20 + 155);
    expect(v2.hits.some(({ url }) => url === "/none")).toBe(false);
  });
});

describe("what happens when servers fail", () => {
  it("aborts and delays the share of requests that a fault names", async () => {
    const fault = (fields: string): string =>
      rule("v1", `match: [{uri: {prefix: /${fields.startsWith("{abort") ? "abort" : "delay"}}}]`, `fault: ${fields}`);
    const http = [
      fault("{abort: {httpStatus: 503, percentage: {value: 30}}}"),
      fault("{delay: {fixedDelay: 200ms, percentage: {value: 100}}}"),
      rule("v1", "match: [{uri: {prefix: /unsaid}}]", "fault: {abort: {httpStatus: 500}}"),
      rule("v1"),
    ].join("");
    const { target, v1 } = await startShop({ http });
    const counts = await tally(300, { ...target, path: "/abort" });
    expect(counts["status 503"]).toBeGreaterThan(30);
    expect(counts["status 503"]).toBeLessThan(150);
    expect(v1.take()).toBe(counts.v1);
    const before = performance.now();
    expect((await call({ ...target, path: "/delay" })).by).toBe("v1");
    expect(performance.now() - before).toBeGreaterThan(190);
    expect(await tally(20, { ...target, path: "/unsaid" })).toEqual({ v1: 20 });
  });

  it("tries again on the codes a rule names, with a time-out for each try, and tells servers which try it is", async () => {
    const answers: number[] = [];
    const http = [rule("v1", 'retries: {attempts: 4, retryOn: "409,gateway-error", backoff: 10ms}', "timeout: 5s")].join("");
    const { target, v1 } = await startShop({ http, v1: { status: () => answers.shift() ?? 200 } });
    answers.push(409, 502, 409, 200);
    expect((await call(target)).status).toBe(200);
    expect(v1.hits.map(({ headers }) => headers["x-envoy-attempt-count"])).toEqual(["1", "2", "3", "4"]);
    answers.push(500);
    expect((await call(target)).status).toBe(500);
    expect(v1.hits).toHaveLength(5);
  });

  it("gives up a try after its own time-out", async () => {
    const { target, v1, proxy, ports } = await startShop({
      http: rule("v1", "timeout: 25s", "retries: {attempts: 2, perTryTimeout: 2s, retryOn: gateway-error}"),
      v1: { hangs: true },
    });
    expect((await call(target)).status).toBe(504);
    expect(v1.hits).toHaveLength(3);
    const cluster = `cluster.outbound|${ports.service}|v1|${SHOP_HOST}`;
    expect(await proxy.stat(`${cluster}.upstream_rq_per_try_timeout`)).toBe(3);
    expect(await proxy.stat(`${cluster}.upstream_rq_timeout`)).toBe(0);
  });
});

describe("rules of several objects", () => {
  const delegating = `
  - match: [{uri: {prefix: /team}}]
    delegate: {name: team, namespace: shop}
    timeout: 4s
  - route: [{destination: {host: ${SHOP_HOST}, subset: v1}}]`;
  const team = `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: team, namespace: shop}
spec:
  http:
  - match: [{uri: {prefix: /team/new}}]
    rewrite: {uri: /new}
    route: [{destination: {host: ${SHOP_HOST}, subset: v2}}]
  - match: [{uri: {prefix: /elsewhere}}]
    directResponse: {status: 410}
  - route: [{destination: {host: ${SHOP_HOST}, subset: v2}}]
`;

  it("are joined where one delegates to another, and follow it", async () => {
    const shop = await startShop({ http: delegating, istiod: { files: { "conf/team.yaml": team } } });
    expect((await call({ ...shop.target, path: "/team/new/x" })).by).toBe("v2");
    expect(shop.v2.hits.at(-1)?.url).toBe("/new/x");
    expect((await call({ ...shop.target, path: "/team/other" })).by).toBe("v2");
    expect((await call({ ...shop.target, path: "/elsewhere" })).by).toBe("v1");
    await shop.istiod.write("conf/team.yaml", team.replace("rewrite: {uri: /new}", "rewrite: {uri: /newer}"));
    await eventually("the delegate's edit is in force", async () => {
      await call({ ...shop.target, path: "/team/new/x" });
      return shop.v2.hits.at(-1)?.url === "/newer/x";
    });
  });

  it("share a host on a gateway: the narrower are asked before those that take everything", async () => {
    const catchAll = rule("v1");
    const narrow = `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: zz-narrow, namespace: shop}
spec:
  hosts: [${SHOP_HOST}, other.example.com]
  gateways: [shop/edge]
  http:
  - match: [{uri: {prefix: /narrow}}]
    route: [{destination: {host: ${SHOP_HOST}, subset: v2}}]
`;
    const { target, proxy } = await startShop({ place: "gateway", http: catchAll, istiod: { files: { "conf/narrow.yaml": narrow } } });
    expect((await call({ ...target, path: "/narrow" })).by).toBe("v2");
    expect((await call(target)).by).toBe("v1");
    expect((await call({ ...target, host: "OTHER.example.com", path: "/narrow" })).by).toBe("v2");
    expect((await call({ ...target, host: "other.example.com" })).status).toBe(404);
    await proxy.assertNothingRejected();
  });
});

describe("WebSockets", () => {
  it("pass through, in both directions", async () => {
    const port = await freePort();
    const server = createServer();
    server.on("upgrade", (request, socket) => {
      const accept = createHash("sha1")
        .update(`${request.headers["sec-websocket-key"]}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
        .digest("base64");
      socket.write(
        `HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-accept: ${accept}\r\n\r\n`,
      );
      socket.on("data", (data) => socket.write(Buffer.concat([Buffer.from("echo:"), data])));
      socket.on("error", () => {});
    });
    await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
    onTestFinished(() => void server.close());
    const { target, istiod, ports } = await startShop({});
    await istiod.write("conf/ws.yaml", websocketEntry(ports.service, port));
    const heard = await eventually("the upgrade is answered", () => upgrade(target.port, "ws.example.com"));
    expect(heard).toMatch(/^HTTP\/1\.1 101 /);
    expect(heard).toContain("echo:hello");
  });
});

const websocketEntry = (service: number, server: number): string => `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: ws, namespace: shop}
spec:
  hosts: [ws.example.com]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: ${service}, name: http, protocol: HTTP}]
  endpoints: [{address: 127.0.0.1, ports: {http: ${server}}}]
`;

/** Asks for an upgrade, says something once it is granted, and gives all that was heard until the echo. */
function upgrade(port: number, host: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    let heard = "";
    const socket = connect(port, "127.0.0.1", () =>
      socket.write(
        `GET /chat HTTP/1.1\r\nhost: ${host}\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`,
      ),
    );
    socket.setTimeout(3_000, () => socket.destroy());
    socket.on("data", (chunk) => {
      const before = heard.includes("\r\n\r\n");
      heard += chunk.toString();
      if (!before && heard.startsWith("HTTP/1.1 101") && heard.includes("\r\n\r\n")) socket.write("hello");
      else if (!heard.startsWith("HTTP/1.1 101")) socket.destroy();
      if (heard.includes("echo:hello")) {
        socket.destroy();
        resolve(heard);
      }
    });
    socket.on("error", () => resolve(undefined)).on("close", () => resolve(heard.includes("echo:hello") ? heard : undefined));
  });
}
