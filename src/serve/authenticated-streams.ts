import type { Caller } from "../authn/authenticator.ts";
import { AuthnError } from "../authn/authn-error.ts";
import { messageOf } from "../base/errors.ts";
import type { DiscoveryStream, DiscoveryStreamEvents, Peer } from "../wire/discovery-stream.ts";
import { GRPC_STATUS } from "../wire/grpc-status.ts";

/** Who is on each stream of the secure port. What is not in it has proved nothing. */
export type Callers = Pick<WeakMap<Peer, Caller>, "get">;

export interface AuthenticatedOptions {
  /** Rejects with `AuthnError`. */
  authenticate(peer: Peer): Promise<Caller>;
  readonly callers: WeakMap<Peer, Caller>;
  accept(stream: DiscoveryStream): DiscoveryStreamEvents;
  refused(peer: Peer, error: AuthnError): void;
}

/** What a client may have said when it becomes known who it is: no more than was on its way, and a proxy opens with a request for each type. */
const MOST_EARLY_MESSAGES = 32;
const MOST_EARLY_BYTES = 1024 * 1024;

/**
 * Lets only callers through who have proved who they are. Nothing they say is read before: it stays with them, so that strangers whose tokens take time to be judged
 * cost no more than what may be sent unasked.
 */
export function authenticatedStreams(options: AuthenticatedOptions): (stream: DiscoveryStream) => DiscoveryStreamEvents {
  return (stream) => {
    const early: Uint8Array[] = [];
    let bytes = 0;
    let open = true;
    let events: DiscoveryStreamEvents | undefined;
    const admit = (caller: Caller): void => {
      if (!open) return;
      options.callers.set(stream.peer, caller);
      // Before whoever takes the stream decides whether to read it: what has come by now is told to it in order.
      stream.resume();
      if (!open) return;
      events = options.accept(stream);
      for (const message of early.splice(0)) if (open) events.message(message);
    };
    const refuse = (error: unknown): void => {
      if (!open) return;
      open = false;
      early.length = 0;
      if (error instanceof AuthnError) options.refused(stream.peer, error);
      stream.close(error instanceof AuthnError ? GRPC_STATUS.UNAUTHENTICATED : GRPC_STATUS.INTERNAL, messageOf(error));
    };
    stream.pause();
    options.authenticate(stream.peer).then(admit).catch(refuse);
    return {
      message(message) {
        if (events !== undefined) return events.message(message);
        bytes += message.length;
        if (early.length >= MOST_EARLY_MESSAGES || bytes > MOST_EARLY_BYTES) {
          refuse(new AuthnError("no credentials", "too much was said before it was known who says it"));
        } else if (open) early.push(message);
      },
      ended() {
        open = false;
        early.length = 0;
        events?.ended();
      },
    };
  };
}
