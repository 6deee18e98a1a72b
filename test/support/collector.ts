import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Server, ServerCredentials } from "@grpc/grpc-js";
import { onTestFinished } from "vitest";

/** A real server that keeps whatever proxies send it: spans, log lines, metrics. */
export interface Collector {
  readonly port: number;
  readonly received: { readonly path: string; readonly headers: Readonly<Record<string, string>>; readonly body: Buffer }[];
  /** Whether something that was sent to the path has all of the texts in it. */
  has(path: string, ...texts: readonly string[]): boolean;
}

type Received = Collector["received"];

const collector = (port: number, received: Received): Collector => ({
  port,
  received,
  has: (path, ...texts) => received.some((item) => item.path === path && texts.every((text) => item.body.includes(text))),
});

export async function httpCollector(): Promise<Collector> {
  const received: Received = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)]));
      received.push({ path: request.url ?? "", headers, body: Buffer.concat(chunks) });
      response.writeHead(202).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return collector((server.address() as AddressInfo).port, received);
}

/** Takes messages of gRPC methods, each a stream or a single one; every answer is empty. */
export async function grpcCollector(paths: readonly { readonly path: string; readonly stream: boolean }[]): Promise<Collector> {
  const received: Received = [];
  const same = (bytes: Buffer): Buffer => bytes;
  const server = new Server();
  const codec = { requestSerialize: same, requestDeserialize: same, responseSerialize: same, responseDeserialize: same };
  server.addService(
    Object.fromEntries(paths.map(({ path, stream }) => [path, { path, requestStream: stream, responseStream: false, ...codec }])),
    Object.fromEntries(
      paths.map(({ path, stream }) => [
        path,
        (
          call: { request: Buffer; metadata: { getMap(): object }; on(event: string, handler: (bytes: Buffer) => void): void },
          answer: (error: null, bytes: Buffer) => void,
        ) => {
          const take = (body: Buffer): void => void received.push({ path, headers: { ...call.metadata.getMap() }, body });
          if (!stream) {
            take(call.request);
            return answer(null, Buffer.alloc(0));
          }
          call.on("data", take);
          call.on("error", () => {});
          call.on("end", () => answer(null, Buffer.alloc(0)));
        },
      ]),
    ),
  );
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    ),
  );
  onTestFinished(() => server.forceShutdown());
  return collector(port, received);
}
