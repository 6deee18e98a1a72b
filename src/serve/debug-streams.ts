import type { Clock } from "../base/clock.ts";
import { messageOf } from "../base/errors.ts";
import { type DiscoveryRequest, readDeltaRequest, readSotwRequest, requestedType } from "../wire/discovery-request.ts";
import type { DiscoveryStream, DiscoveryStreamEvents } from "../wire/discovery-stream.ts";
import type { Encoded } from "../wire/encoded.ts";
import { GRPC_STATUS } from "../wire/grpc-status.ts";
import { deltaResponse, sotwResponse } from "../wire/response-frame.ts";
import { SharedBlocks } from "../wire/shared-blocks.ts";
import { StreamRefusal } from "../xds/refusal.ts";
import type { OpenStream } from "../xds/server.ts";
import type { Callers } from "./authenticated-streams.ts";

/** What somebody wants to know: the type of the question, and what it names. */
export type DebugQuestion = Pick<DiscoveryRequest, "typeUrl" | "names">;

export interface DebugStreamsOptions {
  readonly callers: Callers;
  /** Of the control plane: who is of it is told everything. */
  readonly namespace: string;
  /** Answers with what concerns one namespace, or all where none is given. Throws `StreamRefusal`. */
  answer(question: DebugQuestion, namespace: string | undefined): Promise<readonly Encoded[]>;
  /** Who answers, in the words of Istio's control planes. */
  readonly controlPlane: string;
  readonly clock: Clock;
}

const PREFIX = "istio.io/";
const NONCE = "answer-";
/** A stream on which nothing is said is a proxy's as far as anybody knows. */
const SAYS_WITHIN_MS = 2_000;

/**
 * Takes streams on which Istio's tools ask about the control plane (`istio.io/debug…`) out of those of proxies. Who asks has proved who it is, but stands for no
 * proxy, so its node is not looked at. Each question is answered once.
 */
export function debugStreams(options: DebugStreamsOptions): OpenStream {
  return (stream, asProxy) => {
    if (stream.typeUrl !== undefined) return asProxy();
    let events: DiscoveryStreamEvents | undefined;
    const cancel = options.clock.after(SAYS_WITHIN_MS, () => {
      events ??= asProxy();
    });
    return {
      message(bytes) {
        if (events === undefined) {
          cancel();
          events = requestedType(bytes, stream.variant).startsWith(PREFIX) ? questions(stream, options) : asProxy();
        }
        events.message(bytes);
      },
      ended() {
        cancel();
        events?.ended();
      },
    };
  };
}

const read = ({ variant }: DiscoveryStream, bytes: Uint8Array): DiscoveryRequest =>
  variant === "delta" ? readDeltaRequest(bytes) : readSotwRequest(bytes);

function questions(stream: DiscoveryStream, options: DebugStreamsOptions): DiscoveryStreamEvents {
  let answers = 0;
  const reply = async (question: DebugQuestion): Promise<void> => {
    const resources = await options.answer(question, seenBy(stream, options));
    answers += 1;
    const { controlPlane } = options;
    const nonce = `${NONCE}${answers}`;
    const content = { typeUrl: question.typeUrl, version: String(answers), nonce, resources, removed: [], controlPlane };
    // One at a time: what is asked meanwhile stays with who asks.
    stream.send((stream.variant === "delta" ? deltaResponse : sotwResponse)(content, new SharedBlocks()), () => stream.resume());
  };
  const refuse = (error: unknown): void =>
    stream.close(error instanceof StreamRefusal ? error.status : GRPC_STATUS.INTERNAL, messageOf(error));
  return {
    message(bytes) {
      try {
        const request = read(stream, bytes);
        // What acknowledges an answer is no question; Istio's tools send nonces of their own with theirs.
        if (request.nonce.startsWith(NONCE)) return;
        stream.pause();
        reply(request).catch(refuse);
      } catch (error) {
        refuse(new StreamRefusal(GRPC_STATUS.INVALID_ARGUMENT, messageOf(error)));
      }
    },
    ended() {},
  };
}

/** Undefined: everything. */
function seenBy({ peer }: DiscoveryStream, { callers, namespace }: DebugStreamsOptions): string | undefined {
  const caller = callers.get(peer);
  if (caller === undefined) throw new StreamRefusal(GRPC_STATUS.UNAUTHENTICATED, "only callers who have proved who they are may ask");
  if (caller.once !== undefined)
    throw new StreamRefusal(GRPC_STATUS.UNAUTHENTICATED, "a token for one certificate shows nobody what others have");
  return caller.identity.namespace === namespace ? undefined : caller.identity.namespace;
}
