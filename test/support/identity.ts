import { readFile } from "node:fs/promises";
import { connect as connectHttp2 } from "node:http2";
import { join } from "node:path";
import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { Client, credentials, Metadata, type ServiceError } from "@grpc/grpc-js";
import { systemClock } from "../../src/base/clock.ts";
import { CREATE_CERTIFICATE } from "../../src/ca/certificate-service.ts";
import { IstioCertificateRequestSchema, IstioCertificateResponseSchema } from "../../src/gen/istio/v1/auth/ca_pb.js";
import { buildCsr } from "../../src/pki/csr.ts";
import { generateKeys, privateKeyPem } from "../../src/pki/keys.ts";
import type { Istiod } from "./istiod.ts";

/** A key with the certificate that was signed for it. */
export interface Signed {
  readonly key: string;
  /** The workload's certificate first, then its intermediates. */
  readonly chain: readonly string[];
  readonly roots: string;
}

export interface AskOptions {
  readonly token?: string;
  readonly certificate?: Pick<Signed, "key" | "chain">;
  /** Name asked for in the CSR. */
  readonly name?: string;
  readonly ttlSeconds?: number;
  readonly metadata?: MessageInitShape<typeof IstioCertificateRequestSchema>["metadata"];
  readonly csr?: string;
  /** Further headers of the call. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Port to call, if not the secure one. */
  readonly port?: number;
  /** What the server is verified with, if not the root on its disk. */
  readonly roots?: string;
  /** The name it is verified by, if not that of istiod in `istio-system`. */
  readonly serverName?: string;
}

export const SERVER_NAME = "istiod.istio-system.svc";

export const rootOf = ({ home }: Istiod): Promise<Buffer> => readFile(join(home, "etc/cacerts/root-cert.pem"));

/** Credentials of a client that trusts the mesh's root, with or without a certificate of its own. */
export async function clientCredentials(istiod: Istiod, own?: Pick<Signed, "key" | "chain">, roots?: string) {
  const root = roots === undefined ? await rootOf(istiod) : Buffer.from(roots);
  return own === undefined
    ? credentials.createSsl(root)
    : credentials.createSsl(root, Buffer.from(own.key), Buffer.from(own.chain.join("")));
}

/** Asks a running control plane for a certificate, as an agent does. Rejects with the gRPC error. */
export async function askCertificate(istiod: Istiod, options: AskOptions = {}): Promise<Signed> {
  const keys = await generateKeys("P-256");
  const request = create(IstioCertificateRequestSchema, {
    csr: options.csr ?? buildCsr(keys, options.name ?? "spiffe://cluster.local/ns/evil/sa/admin"),
    validityDuration: BigInt(options.ttlSeconds ?? 0),
    ...(options.metadata !== undefined && { metadata: options.metadata }),
  });
  const client = new Client(
    `127.0.0.1:${options.port ?? istiod.securePort}`,
    await clientCredentials(istiod, options.certificate, options.roots),
    {
      "grpc.ssl_target_name_override": options.serverName ?? SERVER_NAME,
      "grpc.use_local_subchannel_pool": 1,
    },
  );
  const headers = new Metadata();
  if (options.token !== undefined) headers.set("authorization", `Bearer ${options.token}`);
  for (const [name, value] of Object.entries(options.headers ?? {})) headers.set(name, value);
  try {
    const answer = await new Promise<Buffer>((resolve, reject) => {
      const bytes = Buffer.from(toBinary(IstioCertificateRequestSchema, request));
      const identity = (value: Buffer): Buffer => value;
      client.makeUnaryRequest(
        CREATE_CERTIFICATE,
        identity,
        identity,
        bytes,
        headers,
        { deadline: systemClock.now() + 30_000 },
        (error: ServiceError | null, value?: Buffer) => (error === null && value !== undefined ? resolve(value) : reject(error)),
      );
    });
    const { certChain } = fromBinary(IstioCertificateResponseSchema, answer);
    return { key: privateKeyPem(keys.privateKey), chain: certChain.slice(0, -1), roots: certChain.at(-1) ?? "" };
  } finally {
    client.close();
  }
}

/** Whether HTTP/2 over TLS answers there. */
export const answersTls = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const session = connectHttp2(`https://127.0.0.1:${port}`, { rejectUnauthorized: false, servername: SERVER_NAME });
    session.on("connect", () => {
      session.destroy();
      resolve(true);
    });
    session.on("error", () => resolve(false));
  });
