// A workload that speaks gRPC without a proxy: gRPC's own xDS client and server, told over IPC what to do. Its bootstrap comes from the
// environment, as gRPC reads it, and it runs as a process of its own, because that client lives as long as its process.
import { Client, credentials, Metadata, ServerCredentials, type ServiceError } from "@grpc/grpc-js";
import { register, XdsChannelCredentials, XdsServer, XdsServerCredentials } from "@grpc/grpc-js-xds";
import type { CallOrder, Order, ServeOrder } from "./grpc-workload.ts";

register();

const bytes = (value: Buffer): Buffer => value;
const clients = new Map<string, Client>();
const servers = new Set<XdsServer>();

function clientOf({ target, secure }: CallOrder): Client {
  const key = `${target} ${secure}`;
  const insecure = credentials.createInsecure();
  const known = clients.get(key) ?? new Client(target, secure ? new XdsChannelCredentials(insecure) : insecure);
  clients.set(key, known);
  return known;
}

/** Who answered, or how it failed. */
const callOnce = (client: Client, { headers, path, timeoutMs }: CallOrder): Promise<string> =>
  new Promise((resolve) => {
    const metadata = new Metadata();
    for (const [name, value] of Object.entries(headers)) metadata.set(name, value);
    const done = (error: ServiceError | null, answer?: Buffer): void =>
      resolve(error === null ? String(answer) : `status ${error.code}: ${error.details}`);
    const options = timeoutMs === undefined ? {} : { deadline: performance.timeOrigin + performance.now() + timeoutMs };
    client.makeUnaryRequest(path, bytes, bytes, Buffer.from("hello"), metadata, options, done);
  });

async function call(order: CallOrder): Promise<readonly string[]> {
  const client = clientOf(order);
  const answers: string[] = [];
  for (let done = 0; done < order.count; done += 1) answers.push(await callOnce(client, order));
  return answers;
}

function serve({ address, name }: ServeOrder): Promise<readonly string[]> {
  const server = new XdsServer();
  servers.add(server);
  const method = { path: "/echo.Echo/Say", requestStream: false, responseStream: false };
  const codec = { requestSerialize: bytes, requestDeserialize: bytes, responseSerialize: bytes, responseDeserialize: bytes };
  server.addService(
    { say: { ...method, ...codec } },
    { say: (_: unknown, answer: (error: null, value: Buffer) => void) => answer(null, Buffer.from(name)) },
  );
  return new Promise((resolve, reject) =>
    server.bindAsync(address, new XdsServerCredentials(ServerCredentials.createInsecure()), (error, port) =>
      error === null ? resolve([String(port)]) : reject(error),
    ),
  );
}

process.on("message", ({ id, order }: { readonly id: number; readonly order: Order }) => {
  const result = order.kind === "call" ? call(order) : serve(order);
  result.then(
    (answers) => process.send?.({ id, answers }),
    (error: unknown) => process.send?.({ id, error: String(error) }),
  );
});
process.on("disconnect", () => process.exit(0));
