import {
  Client,
  credentials,
  type handleServerStreamingCall,
  type handleUnaryCall,
  Metadata,
  Server,
  ServerCredentials,
  type ServiceError,
  status,
} from "@grpc/grpc-js";
import { onTestFinished } from "vitest";

/** A real gRPC server whose messages are plain bytes. Its methods: `Say` answers with its name, `Count` streams numbers, `Fail` fails. */
export interface GrpcEcho {
  readonly port: number;
  /** Methods that were called, with the metadata that came. */
  readonly calls: { readonly method: string; readonly metadata: Metadata }[];
}

const same = (bytes: Buffer): Buffer => bytes;
const method = (name: string, responseStream: boolean) => ({
  path: `/echo.Echo/${name}`,
  requestStream: false,
  responseStream,
  requestSerialize: same,
  requestDeserialize: same,
  responseSerialize: same,
  responseDeserialize: same,
});

export async function grpcEcho(name: string, options: { readonly failures?: number } = {}): Promise<GrpcEcho> {
  const calls: GrpcEcho["calls"] = [];
  let failures = options.failures ?? 0;
  const say: handleUnaryCall<Buffer, Buffer> = ({ metadata, request }, answer) => {
    calls.push({ method: "Say", metadata });
    if (failures > 0) {
      failures -= 1;
      return answer({ code: status.UNAVAILABLE, details: "not yet" });
    }
    const trailers = new Metadata();
    trailers.set("x-served-by", name);
    answer(null, Buffer.from(`${name}: ${request.toString()}`), trailers);
  };
  const count: handleServerStreamingCall<Buffer, Buffer> = (stream) => {
    calls.push({ method: "Count", metadata: stream.metadata });
    for (const number of ["one", "two", "three"]) stream.write(Buffer.from(number));
    stream.end();
  };
  const server = new Server();
  server.addService({ say: method("Say", false), count: method("Count", true) }, { say, count });
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    ),
  );
  onTestFinished(() => server.forceShutdown());
  return { port, calls };
}

export interface GrpcCaller {
  /** What `Say` answers, or `status <number>: <details>`. */
  say(text: string, headers?: Readonly<Record<string, string>>): Promise<string>;
  /** Everything `Count` streams. */
  count(): Promise<readonly string[]>;
}

/** A gRPC client that calls a service by its name through a proxy on loopback. */
export function grpcCaller({ port, host }: { readonly port: number; readonly host: string }): GrpcCaller {
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure(), {
    "grpc.default_authority": host,
    "grpc.enable_retries": 0,
  });
  onTestFinished(() => client.close());
  return {
    say: (text, headers = {}) =>
      new Promise((resolve) => {
        const metadata = new Metadata();
        for (const [name, value] of Object.entries(headers)) metadata.set(name, value);
        client.makeUnaryRequest("/echo.Echo/Say", same, same, Buffer.from(text), metadata, (error: ServiceError | null, answer?: Buffer) =>
          resolve(error === null ? String(answer) : `status ${error.code}: ${error.details}`),
        );
      }),
    count: () =>
      new Promise((resolve, reject) => {
        const heard: string[] = [];
        const stream = client.makeServerStreamRequest("/echo.Echo/Count", same, same, Buffer.alloc(0));
        stream.on("data", (bytes: Buffer) => heard.push(bytes.toString()));
        stream.on("error", reject).on("end", () => resolve(heard));
      }),
  };
}
