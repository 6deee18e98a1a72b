import { Server, ServerCredentials, type ServerUnaryCall, type sendUnaryData } from "@grpc/grpc-js";
import { onTestFinished } from "vitest";

/** A real external authorizer over gRPC (envoy.service.auth.v3). It answers by a word it finds, or not, in what it is asked. */
export interface Authorizer {
  readonly port: number;
  readonly asked: () => number;
}

/** CheckResponse with status OK, which is the default of every field, and with PERMISSION_DENIED (7). */
const ALLOWED = Buffer.alloc(0);
const DENIED = Buffer.from([0x0a, 0x02, 0x08, 0x07]);

/** Lets in what carries `password` anywhere in the question. */
export async function grpcAuthorizer(password: string): Promise<Authorizer> {
  let asked = 0;
  const same = (bytes: Buffer): Buffer => bytes;
  const server = new Server();
  server.addService(
    {
      check: {
        path: "/envoy.service.auth.v3.Authorization/Check",
        requestStream: false,
        responseStream: false,
        requestSerialize: same,
        requestDeserialize: same,
        responseSerialize: same,
        responseDeserialize: same,
      },
    },
    {
      check({ request }: ServerUnaryCall<Buffer, Buffer>, answer: sendUnaryData<Buffer>) {
        asked += 1;
        answer(null, request.includes(password) ? ALLOWED : DENIED);
      },
    },
  );
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    ),
  );
  onTestFinished(() => server.forceShutdown());
  return { port, asked: () => asked };
}
