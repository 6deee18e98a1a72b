import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import {
  createServer as createHttp2,
  createSecureServer as createHttp2Tls,
  type Http2ServerRequest,
  type Http2ServerResponse,
} from "node:http2";
import { createServer as createHttps } from "node:https";
import { type AddressInfo, createServer as createTcp, type Server } from "node:net";
import type { TLSSocket } from "node:tls";
import { describe, it, onTestFinished } from "vitest";
import { createCertificateIssuer } from "../../../test/support/certificates.ts";
import { freePort } from "../../../test/support/ports.ts";
import { systemClock } from "../../base/clock.ts";
import { readAppProbes } from "./app-probes.ts";
import { runProbe } from "./run-probe.ts";

const TARGET = { host: "127.0.0.1", from: undefined, statusPort: 15_020, clock: systemClock };
const READY = "/app-health/app/readyz";

async function listen(server: Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

const app = (handle: (request: IncomingMessage, response: ServerResponse) => void): Promise<number> => listen(createServer(handle));

async function probe(config: Record<string, unknown>, headers: IncomingHttpHeaders = {}, target: Parameters<typeof runProbe>[1] = TARGET) {
  const found = readAppProbes(JSON.stringify({ [READY]: { timeoutSeconds: 60, ...config } })).get(READY);
  assert.ok(found !== undefined);
  return runProbe(found, target, headers);
}

/** A server with the standard health service; `answer` is its message, or a gRPC status. */
async function health(answer: Buffer | number): Promise<{ readonly port: number; readonly asked: Buffer[] }> {
  const asked: Buffer[] = [];
  const server = createHttp2();
  server.on("stream", (stream, headers) => {
    assert.equal(headers[":path"], "/grpc.health.v1.Health/Check");
    stream.on("data", (bytes: Buffer) => asked.push(bytes));
    stream.on("end", () => {
      stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
      stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": String(typeof answer === "number" ? answer : 0) }));
      stream.end(typeof answer === "number" ? "" : Buffer.concat([Buffer.from([0, 0, 0, 0, answer.length]), answer]));
    });
  });
  return { port: await listen(server as unknown as Server), asked };
}

describe("probes of the application", () => {
  it("over TLS are in the HTTP that the server speaks, whatever its certificate, under the name of their host", async () => {
    const issuer = await createCertificateIssuer("somebody");
    const { cert, key } = await issuer.issue("DNS:other.test");
    const names: unknown[] = [];
    const handle = (request: IncomingMessage | Http2ServerRequest, response: ServerResponse | Http2ServerResponse): void => {
      const socket = "stream" in request ? request.stream.session?.socket : request.socket;
      names.push((socket as TLSSocket | undefined)?.servername);
      (response as ServerResponse)
        .writeHead(request.url === "/gone" ? 302 : 503, { location: "/there" })
        .end(`${request.httpVersion} ${request.headers["x-own"]}`);
    };
    for (const [version, server] of [
      ["2.0", createHttp2Tls({ cert, key }, handle)],
      ["2.0", createHttp2Tls({ cert, key, allowHTTP1: true }, handle)],
      ["1.1", createHttps({ cert, key }, handle)],
    ] as const) {
      const port = await listen(server as unknown as Server);
      const httpGet = { path: "/gone", port, scheme: "HTTPS", httpHeaders: [{ name: "X-Own", value: "1" }] };
      const answer = await probe({ httpGet }, { host: "mine.test" });
      assert.deepEqual(answer, { status: 503, body: `${version} 1` });
    }
    assert.deepEqual(new Set(names), new Set(["mine.test"]));
  });

  it("over TLS end where nobody answers in time", async () => {
    const port = await listen(createTcp(() => {}));
    const { status, body } = await probe({ httpGet: { path: "/", port, scheme: "HTTPS" }, timeoutSeconds: 1 });
    assert.deepEqual([status, body], [500, "the application did not answer in time\n"]);
  });

  it("over HTTP give its status and the beginning of its answer, and show it the kubelet's headers and the probe's", async () => {
    let seen: IncomingMessage | undefined;
    const port = await app((request, response) => {
      seen = request;
      response.writeHead(418).end("x".repeat(20_000));
    });
    const { status, body } = await probe(
      { httpGet: { path: "hello?a=b", port, httpHeaders: [{ name: "X-Own", value: "1" }] } },
      { host: "10.0.0.1:15020", "user-agent": "kube-probe/1.30", connection: "keep-alive" },
    );
    assert.deepEqual([status, body.length], [418, 10_240]);
    assert.equal(seen?.url, "/hello?a=b");
    assert.deepEqual([seen.headers.host, seen.headers["x-own"], seen.headers["user-agent"]], [`10.0.0.1:${port}`, "1", "kube-probe/1.30"]);
    assert.equal(seen.headers.connection, "close");
    await probe({ httpGet: { port } }, { host: "app.example.com" });
    assert.equal(seen.headers.host, "app.example.com");
  });

  it("follow redirects on the same host, and take one elsewhere for health", async () => {
    const port = await app((request, response) => {
      if (request.url === "/done") response.end("done");
      else if (request.url === "/away") response.writeHead(302, { location: "http://example.com/" }).end();
      else if (request.url === "/loop") response.writeHead(302, { location: "/loop" }).end();
      else response.writeHead(302, { location: "/done" }).end();
    });
    assert.deepEqual(await probe({ httpGet: { path: "/", port } }), { status: 200, body: "done" });
    assert.deepEqual(await probe({ httpGet: { path: "/away", port } }), { status: 200, body: "" });
    assert.equal((await probe({ httpGet: { path: "/loop", port } })).status, 500);
  });

  it("fail where it does not answer in time, or nobody listens", async () => {
    const port = await app(() => {});
    const started = performance.now();
    const slow = await probe({ httpGet: { port }, timeoutSeconds: 0.2 });
    assert.equal(slow.status, 500);
    assert.match(slow.body, /in time/);
    assert.ok(performance.now() - started < 30_000);
    for (const config of [
      { httpGet: { port: await freePort() } },
      { tcpSocket: { port: await freePort() } },
      { grpc: { port: await freePort() } },
    ])
      assert.equal((await probe(config)).status, 500);
  });

  it("over TCP connect, from the address by which interception lets them through", async () => {
    const sources: (string | undefined)[] = [];
    const port = await listen(createTcp((socket) => sources.push(socket.remoteAddress)));
    assert.equal((await probe({ tcpSocket: { port } }, {}, { ...TARGET, from: "127.0.0.6" })).status, 200);
    const http = await app((request, response) => {
      sources.push(request.socket.remoteAddress);
      response.end();
    });
    await probe({ httpGet: { port: http } }, {}, { ...TARGET, from: "127.0.0.6" });
    assert.deepEqual(sources, ["127.0.0.6", "127.0.0.6"]);
  });

  it("over gRPC ask the standard service", async () => {
    const serving = await health(Buffer.of(0x08, 1));
    assert.equal((await probe({ grpc: { port: serving.port, service: "shop" } })).status, 200);
    assert.equal(Buffer.concat(serving.asked).toString("latin1"), "\0\0\0\0\u0006\n\u0004shop");
    assert.equal((await probe({ grpc: { port: (await health(Buffer.of(0x08, 2))).port } })).status, 500);
    assert.match((await probe({ grpc: { port: (await health(12)).port } })).body, /does not implement/);
  });

  it("are named where they cannot be read", () => {
    const bad: readonly (readonly [string, RegExp])[] = [
      ["{", /cannot be read/],
      ["[]", /not an object/],
      ['{"/healthz": {"httpGet": {"port": 80}}}', /no path of a probe/],
      [`{"${READY}": {"httpGet": {"port": "http"}}}`, /no number/],
      [`{"${READY}": {}}`, /needs one of/],
      [`{"${READY}": {"grpc": {"port": 1}, "tcpSocket": {"port": 1}}}`, /needs one of/],
    ];
    for (const [json, message] of bad) assert.throws(() => readAppProbes(json), message);
    assert.equal(readAppProbes("").size, 0);
  });
});
