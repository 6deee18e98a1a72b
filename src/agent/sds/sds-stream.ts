import type { Log } from "../../base/log.ts";
import { deltaResponseBytes } from "../../wire/delta-frames.ts";
import { type DiscoveryRequest, readDeltaRequest, readSotwRequest } from "../../wire/discovery-request.ts";
import type { DiscoveryStream, DiscoveryStreamEvents } from "../../wire/discovery-stream.ts";
import { bytesField, messageField, textField } from "../../wire/field-writer.ts";
import { SECRET_TYPE } from "../../wire/type-urls.ts";
import type { SecretStore, ServedSecret } from "./secret-store.ts";

export interface SdsStreamOptions {
  readonly store: SecretStore;
  /** Takes over a stream that asks for these names, which are not ours. */
  passOn(stream: DiscoveryStream, names: readonly string[]): DiscoveryStreamEvents;
  readonly log: Log;
}

/**
 * Serves one stream of secrets. Envoy opens one for each secret; one that asks for a name of somebody else is handed on as a whole, before
 * anything was said on it.
 */
export function serveSecrets(stream: DiscoveryStream, options: SdsStreamOptions): DiscoveryStreamEvents {
  let passedOn: DiscoveryStreamEvents | undefined;
  const watched = new Map<string, () => void>();
  const known = new Map<string, ServedSecret>();
  const foreign = new Set<string>();
  let sent = 0;
  const send = (names: readonly string[]): void => {
    const secrets = names.flatMap((name) => known.get(name) ?? []);
    if (secrets.length === 0) return;
    sent += 1;
    stream.send([stream.variant === "delta" ? deltaOf(names, known, sent) : sotwOf(secrets, sent)], () => {});
  };
  const watch = (name: string): void => {
    if (watched.has(name)) return;
    watched.set(name, () => {});
    const stop = options.store.watch(name, (secret) => {
      known.set(name, secret);
      send([name]);
    });
    watched.set(name, stop);
  };
  const forget = (name: string): void => {
    watched.get(name)?.();
    watched.delete(name);
    known.delete(name);
  };
  const take = (request: DiscoveryRequest): void => {
    if (request.error !== undefined)
      options.log.warn({ secrets: [...watched.keys()], reason: request.error.message }, "Envoy rejected a secret");
    if (stream.variant === "sotw") for (const name of watched.keys()) if (!request.names.includes(name)) forget(name);
    for (const name of request.unsubscribe) forget(name);
    for (const name of request.names) {
      if (options.store.owns(name)) watch(name);
      else if (!foreign.has(name)) {
        foreign.add(name);
        options.log.warn(
          { secret: name },
          "a secret that is not the agent's was asked for among others that are; it takes a stream of its own",
        );
      }
    }
  };
  return {
    message(bytes) {
      if (passedOn !== undefined) return passedOn.message(bytes);
      const request = stream.variant === "delta" ? readDeltaRequest(bytes) : readSotwRequest(bytes);
      if (watched.size > 0 || request.names.length === 0 || request.names.some((name) => options.store.owns(name))) return take(request);
      passedOn = options.passOn(stream, request.names);
      passedOn.message(bytes);
    },
    ended() {
      for (const stop of watched.values()) stop();
      passedOn?.ended();
    },
  };
}

const anySecret = ({ bytes }: ServedSecret): Buffer => Buffer.concat([textField(1, SECRET_TYPE), bytesField(2, bytes)]);

function sotwOf(secrets: readonly ServedSecret[], sequence: number): Buffer {
  const version = secrets.map((secret) => secret.version).join(",");
  return Buffer.concat([
    textField(1, version),
    ...secrets.map((secret) => bytesField(2, anySecret(secret))),
    textField(4, SECRET_TYPE),
    textField(5, String(sequence)),
  ]);
}

function deltaOf(names: readonly string[], known: ReadonlyMap<string, ServedSecret>, sequence: number): Buffer {
  const resources = names.flatMap((name) => {
    const secret = known.get(name);
    return secret === undefined
      ? []
      : [Buffer.concat([textField(3, name), textField(1, secret.version), messageField(2, [anySecret(secret)])])];
  });
  return deltaResponseBytes({ typeUrl: SECRET_TYPE, nonce: String(sequence), resources, removed: [] });
}
