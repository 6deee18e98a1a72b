// The program of image `echo`: servers that tell what reached them. Flags: --http PORT, --tcp PORT, --grpc PORT (health only), --delay MS before
// it listens. `POST /health?status=503` changes what `/healthz` and gRPC health say.
import { createServer } from "node:http";
import { createServer as createHttp2Server, type ServerHttp2Stream } from "node:http2";
import { createServer as createTcpServer } from "node:net";
import { hostname } from "node:os";
import { parseArgs } from "node:util";
import { systemClock } from "../../../../src/base/clock.ts";

const port = { type: "string", multiple: true, default: [] as string[] } as const;
const { values } = parseArgs({ options: { http: port, tcp: port, grpc: port, delay: { type: "string", default: "0" } } });

let health = 200;

const httpServer = () =>
  createServer((request, response) => {
    const url = new URL(request.url ?? "/", "http://echo");
    if (request.method === "POST" && url.pathname === "/health") health = Number(url.searchParams.get("status"));
    const status = url.pathname === "/healthz" ? health : Number(url.searchParams.get("status") ?? 200);
    const { method, headers, socket } = request;
    const body = { pod: hostname(), from: socket.remoteAddress, to: socket.localAddress, method, url: request.url, headers };
    response.writeHead(status, { "content-type": "application/json", "x-served-by": hostname() }).end(JSON.stringify(body));
  });

const tcpServer = () =>
  createTcpServer((socket) => {
    socket.on("error", () => {}).write(`${hostname()}\n`);
    socket.pipe(socket);
  });

/** The answer to any call: HealthCheckResponse, SERVING or NOT_SERVING. */
const grpcServer = () =>
  createHttp2Server().on("stream", (stream: ServerHttp2Stream) => {
    stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
    stream.once("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
    stream.end(Buffer.of(0, 0, 0, 0, 2, 0x08, health === 200 ? 1 : 2));
  });

process.on("SIGTERM", () => process.exit(0));
await systemClock.sleep(Number(values.delay));
for (const one of values.http) httpServer().listen(Number(one));
for (const one of values.tcp) tcpServer().listen(Number(one));
for (const one of values.grpc) grpcServer().listen(Number(one));
process.stdout.write(`${hostname()} listens\n`);
