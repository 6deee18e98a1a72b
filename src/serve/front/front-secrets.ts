import { create } from "@bufbuild/protobuf";
import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import { type Secret, SecretSchema } from "../../gen/envoy/extensions/transport_sockets/tls/v3/secret_pb.js";
import { DiscoveryResponseSchema } from "../../gen/envoy/service/discovery/v3/discovery_pb.js";
import { readSotwRequest } from "../../wire/discovery-request.ts";
import type { DiscoveryStream, DiscoveryStreamEvents } from "../../wire/discovery-stream.ts";
import { anyOf, encode } from "../../wire/encode.ts";
import { createGrpcServer, type GrpcServer, SECRETS_METHOD } from "../../wire/grpc-server.ts";
import type { TlsCredentials, TlsMaterial } from "../../wire/tls-listener.ts";
import { SECRET_TYPE } from "../../wire/type-urls.ts";
import { CLIENTS_SECRET, SERVER_SECRET } from "./front-bootstrap.ts";

export interface FrontSecretsOptions {
  readonly tls: TlsCredentials;
  readonly clock: Clock;
  readonly log: Log;
  /** Told of each secret that Envoy asks for. */
  asked(name: string): void;
}

/** Gives the Envoy in front of us its certificate and the roots of clients (SDS), and new ones as soon as there are some. Keys touch no disk. */
export function frontSecrets({ tls, clock, log, asked }: FrontSecretsOptions): GrpcServer {
  return createGrpcServer({ accept, healthy: () => true, discoveryPaths: { [SECRETS_METHOD]: "sotw" }, clock });

  function accept(stream: DiscoveryStream): DiscoveryStreamEvents {
    let names: readonly string[] = [];
    let sequence = 0;
    const send = (): void => {
      sequence += 1;
      const resources = names.flatMap((name) => secretOf(name, tls.current) ?? []).map((secret) => anyOf(SecretSchema, secret));
      const response = { typeUrl: SECRET_TYPE, versionInfo: String(sequence), nonce: String(sequence), resources };
      stream.send([encode(DiscoveryResponseSchema, create(DiscoveryResponseSchema, response))], () => {});
    };
    const stop = tls.follow(() => {
      if (names.length > 0) send();
    });
    return {
      message(bytes) {
        const request = readSotwRequest(bytes);
        if (request.error !== undefined) log.error({ reason: request.error.message }, "the Envoy in front refuses its certificates");
        if (request.names.join() === names.join()) return;
        names = request.names;
        send();
        for (const name of names) asked(name);
      },
      ended: stop,
    };
  }
}

function secretOf(name: string, { chain, key, clientRoots }: TlsMaterial): Secret | undefined {
  const inline = (text: string) => ({ specifier: { case: "inlineBytes", value: Buffer.from(text) } }) as const;
  if (name === SERVER_SECRET)
    return create(SecretSchema, {
      name,
      type: { case: "tlsCertificate", value: { certificateChain: inline(chain), privateKey: inline(key.reveal()) } },
    });
  if (name === CLIENTS_SECRET)
    return create(SecretSchema, {
      name,
      type: { case: "validationContext", value: { trustedCa: inline(clientRoots.join("\n")), allowExpiredCertificate: true } },
    });
  return undefined;
}
