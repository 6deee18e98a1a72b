import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { hostPort } from "../base/address.ts";
import type { Clock } from "../base/clock.ts";
import { messageOf } from "../base/errors.ts";
import { IstioCertificateRequestSchema, IstioCertificateResponseSchema } from "../gen/istio/v1/auth/ca_pb.js";
import { formatSpiffeId } from "../pki/spiffe.ts";
import { type CallHeaders, type ChannelTls, type GrpcChannel, GrpcError, openGrpcChannel } from "../wire/grpc-channel.ts";
import { GRPC_STATUS } from "../wire/grpc-status.ts";
import { type Issued, type Signer, SigningError, type SignRequest } from "./authority.ts";
import { certificatesOf, judgeAnswer } from "./judge-answer.ts";

/** How another CA is called, read anew for each connection: files may have been replaced. */
export interface RemoteCall {
  readonly tls: ChannelTls;
  readonly headers: CallHeaders;
}

export interface RemoteSignerOptions {
  readonly host: string;
  readonly port: number;
  /** Rejects with a sentence where roots or credentials cannot be had. */
  call(): Promise<RemoteCall>;
  readonly timeoutMs: number;
  readonly clock: Clock;
  /** The roots that came with a certificate. */
  answered(roots: string): void;
}

const CREATE_CERTIFICATE = "/istio.v1.auth.IstioCertificateService/CreateCertificate";

/**
 * Leaves signing to another control plane or CA that speaks Istio's certificate service. The workload's own request is passed on, with the
 * identity it has proved to us; what comes back is believed only if it is for that identity and key and leads to the roots that came with it.
 */
export function remoteSigner(options: RemoteSignerOptions): Signer & { close(): void } {
  const { host, port, timeoutMs, clock } = options;
  const where = `the CA at ${hostPort(host, port)}`;
  let current: { readonly id: string; readonly channel: Promise<GrpcChannel> } | undefined;
  const close = (): void => {
    current?.channel.then((open) => open.close()).catch(() => {});
    current = undefined;
  };
  /** One connection for all requests, as long as roots and certificate are what it was opened with. */
  const connection = (tls: ChannelTls): Promise<GrpcChannel> => {
    const id = `${tls.roots ?? ""}${tls.client?.chain ?? ""}`;
    if (current?.id === id) return current.channel;
    close();
    const opened = { id, channel: openGrpcChannel({ to: { host, port }, tls, clock }) };
    const forget = (): void => {
      if (current === opened) current = undefined;
    };
    current = opened;
    opened.channel.then(({ closed }) => closed.then(forget), forget);
    return opened.channel;
  };
  return {
    async sign(request) {
      try {
        const { tls, headers } = await options.call();
        const bytes = await (await connection(tls)).unary(CREATE_CERTIFICATE, requestBytes(request), { headers, timeoutMs });
        const issued = readAnswer(bytes, request, clock.now());
        options.answered(issued.roots);
        return issued;
      } catch (error) {
        throw new SigningError(`${where} ${reasonOf(error)}`);
      }
    },
    close,
  };
}

function requestBytes({ csr, ttlMs, identity }: SignRequest): Uint8Array {
  const request = create(IstioCertificateRequestSchema, {
    csr,
    validityDuration: BigInt(Math.round(ttlMs / 1_000)),
    metadata: { ImpersonatedIdentity: formatSpiffeId(identity) },
  });
  return toBinary(IstioCertificateRequestSchema, request);
}

function reasonOf(error: unknown): string {
  const status = error instanceof GrpcError ? error.status : undefined;
  if (status === GRPC_STATUS.UNAUTHENTICATED || status === GRPC_STATUS.PERMISSION_DENIED) return `refuses us: ${messageOf(error)}`;
  return `gave no certificate: ${messageOf(error)}`;
}

function readAnswer(bytes: Uint8Array, request: SignRequest, now: number): Issued {
  const texts = [...fromBinary(IstioCertificateResponseSchema, bytes).certChain];
  const roots = certificatesOf(texts.pop() ?? "");
  return judgeAnswer({ chain: texts.flatMap(certificatesOf), roots }, request, now);
}
