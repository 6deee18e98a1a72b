import { messageOf } from "../base/errors.ts";
import type { Parts, Ports } from "./control-plane.ts";
import type { GrpcPorts } from "./grpc-ports.ts";
import { openSecure } from "./open-ports.ts";
import { openWebhooks, type WebhookOptions } from "./webhooks.ts";

export interface RestOptions extends WebhookOptions {
  readonly grpc: GrpcPorts;
  /** What is open. */
  readonly ports: Ports;
  /** The control plane has ended meanwhile. */
  readonly ending: AbortSignal;
}

/** Opens the ports that could not be opened at the start because there was no certificate to show on them, when there is one. */
export function openRest(parts: Parts, { grpc, ports, ending, ...webhooks }: RestOptions): void {
  const { identity, options } = parts;
  identity.whenComplete(async () => {
    if (ending.aborted) return;
    try {
      const secureGrpc = ports.secureGrpc ?? (await openSecure(parts, grpc));
      const judging = ports.webhooks ?? (await openWebhooks(parts, webhooks));
      options.log.info(
        { secureGrpcPort: secureGrpc?.port, webhookPort: judging?.port },
        "the CA is known; the ports that waited for it are open",
      );
    } catch (error) {
      options.log.error({ reason: messageOf(error) }, "a port that waited for the CA cannot be opened");
    }
  });
}
