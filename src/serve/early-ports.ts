import type { Clock } from "../base/clock.ts";
import { EdgeError } from "../base/errors.ts";
import { listenError } from "../base/listen-error.ts";
import { DEFAULT_GRPC_SETTINGS } from "../wire/grpc-server.ts";
import { type OpenPort, openPort } from "../wire/listener.ts";

/** Ports for proxies that are open before proxies can be served. */
export interface EarlyPorts {
  /** The port at this address: the one that is open already, else it is opened now. */
  take(address: string): Promise<OpenPort>;
  /** Closes those that nobody has taken. */
  close(): void;
}

/** A start takes less. Where it takes longer, proxies do not wait for it, and go where they are served. */
const MOST_EARLY_MS = 2_000;

/**
 * Binds the ports for proxies as the first thing a control plane does. After a restart every proxy calls at once, and one that is refused
 * waits longer each time before it calls again; one that is connected is served as soon as that is possible. Throws `EdgeError` where one is taken.
 */
export async function openEarly(addresses: readonly string[], clock: Pick<Clock, "after">): Promise<EarlyPorts> {
  const open = new Map<string, OpenPort>();
  const close = (): void => {
    for (const port of open.values()) port.close();
    open.clear();
  };
  try {
    for (const address of addresses) open.set(address, await openOne(address));
  } catch (error) {
    close();
    throw error;
  }
  const cancel = clock.after(MOST_EARLY_MS, close);
  return {
    async take(address) {
      const port = open.get(address) ?? (await openOne(address));
      open.delete(address);
      return port;
    },
    close() {
      cancel();
      close();
    },
  };
}

async function openOne(address: string): Promise<OpenPort> {
  try {
    return await openPort(address, DEFAULT_GRPC_SETTINGS.maxConnections);
  } catch (error) {
    throw listenError(address, error instanceof EdgeError ? error.cause : error);
  }
}
