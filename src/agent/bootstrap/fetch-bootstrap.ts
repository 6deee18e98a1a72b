import { BackOff } from "../../base/back-off.ts";
import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import { bodyOfResource, type DeltaRequestParts, deltaRequestBytes, readDeltaResponse } from "../../wire/delta-frames.ts";
import { GrpcError } from "../../wire/grpc-channel.ts";
import { DELTA_METHOD } from "../../wire/grpc-server.ts";
import { GRPC_STATUS } from "../../wire/grpc-status.ts";
import { BOOTSTRAP_TYPE, ENDPOINT_TYPE } from "../../wire/type-urls.ts";
import type { Dialer } from "../dialer.ts";
import { sentenceOf } from "../identity/workload-identity.ts";
import type { BootstrapFile } from "./bootstrap-file.ts";

export interface BootstrapQuery {
  readonly dialer: Dialer;
  readonly node: Uint8Array;
  /** The last one that came; empty where the last control plane that answered knows none. */
  readonly kept: BootstrapFile;
  /** Makes one without a control plane's help. */
  builtIn(): Promise<Uint8Array>;
  readonly clock: Clock;
  readonly log: Log;
}

/** One that is busy (it has just started, and all its proxies called) may need a while. */
const ANSWER_MS = 5_000;
/** A control plane that takes the question so often and never answers does not know the type. */
const MOST_SILENCES = 2;
/** Enough for a certificate that is asked for at the same time. */
const MOST_REFUSALS = 5;

/**
 * Gets the control plane's part of the bootstrap. Where none answers in time, what came of it last counts; a control plane that knows no bootstraps
 * (Istio's own, or one that passes over the question again and again) leaves the one that is built in. Without all three it waits: an Envoy without any configuration would be of no use.
 */
export async function getBootstrap(query: BootstrapQuery, signal: AbortSignal): Promise<Uint8Array> {
  const { log, kept, clock } = query;
  const backOff = new BackOff({ firstMs: 250, mostMs: 15_000 });
  const refused = new BackOff({ firstMs: 100, mostMs: 1_000 });
  let silences = 0;
  let refusals = 0;
  for (let told = ""; ; ) {
    try {
      const answer = await ask(query);
      if (answer === undefined) {
        log.info("the control plane knows no bootstraps; the built-in one is used");
        await kept.write(Buffer.of());
        return await query.builtIn();
      }
      await kept.write(answer);
      return answer;
    } catch (error) {
      const status = error instanceof GrpcError ? error.status : undefined;
      // A join token is used up by the certificate that it gets, which is shown the next time.
      if (status === GRPC_STATUS.UNAUTHENTICATED && ++refusals < MOST_REFUSALS) {
        await clock.sleep(refused.next(), signal);
        continue;
      }
      const last = await kept.read();
      if (last !== undefined) {
        const used = last.length > 0 ? "the last one" : "the built-in one, as the last time,";
        log.warn(`no bootstrap from the control plane: ${sentenceOf(error)}; ${used} is used`);
        return last.length > 0 ? last : await query.builtIn();
      }
      silences += status === GRPC_STATUS.DEADLINE_EXCEEDED ? 1 : 0;
      if (silences === MOST_SILENCES) {
        log.info("the control plane never answers what it is asked for a bootstrap; the built-in one is used");
        return await query.builtIn();
      }
      if (sentenceOf(error) !== told) log.warn(`no bootstrap from the control plane: ${sentenceOf(error)}; trying again`);
      told = sentenceOf(error);
      await clock.sleep(backOff.next(), signal);
    }
  }
}

/** Nothing was said of the question itself. */
const LATER: readonly number[] = [GRPC_STATUS.UNAVAILABLE, GRPC_STATUS.DEADLINE_EXCEEDED, GRPC_STATUS.UNAUTHENTICATED];

/** Asks once; undefined where the type is not known. Istio's own control plane ends the stream of who asks for a type it does not know. */
async function ask(query: BootstrapQuery): Promise<Uint8Array | undefined> {
  try {
    return await firstAnswer(query, { typeUrl: BOOTSTRAP_TYPE });
  } catch (error) {
    if (!(error instanceof GrpcError) || LATER.includes(error.status)) throw error;
    // Is it the question that is refused, or are we? Assignments every control plane has; that of no cluster costs nothing.
    await firstAnswer(query, { typeUrl: ENDPOINT_TYPE, subscribe: ["none"] });
    return undefined;
  }
}

/** Opens a stream with one request; gives the body of the first resource, undefined where there is none. Rejects where the stream ends before. */
async function firstAnswer({ dialer, node, clock }: BootstrapQuery, request: DeltaRequestParts): Promise<Uint8Array | undefined> {
  const { channel, headers, address } = await dialer.dial();
  const { promise, resolve, reject } = Promise.withResolvers<Uint8Array | undefined>();
  const call = channel.open(DELTA_METHOD, headers, {
    message(bytes) {
      const { typeUrl, resources } = readDeltaResponse(bytes);
      const [resource] = resources;
      if (typeUrl === request.typeUrl) resolve(resource === undefined ? undefined : Buffer.from(bodyOfResource(resource.bytes)));
    },
    ended: (error) =>
      reject(new GrpcError(error?.status ?? GRPC_STATUS.UNAVAILABLE, `${address} refuses: ${error?.message ?? "the stream ended"}`)),
  });
  call.send(deltaRequestBytes({ ...request, node }));
  const cancel = clock.after(ANSWER_MS, () => reject(new GrpcError(GRPC_STATUS.DEADLINE_EXCEEDED, `${address} gives no answer`)));
  try {
    return await promise;
  } catch (error) {
    dialer.avoid(address);
    throw error;
  } finally {
    cancel();
    channel.close();
  }
}
