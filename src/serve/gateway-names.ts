import type { Clock } from "../base/clock.ts";
import { messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";

/** Addresses of a host name, and for how long they hold. */
export interface ResolvedName {
  readonly addresses: readonly string[];
  readonly ttlMs: number;
}

export interface GatewayNamesOptions {
  readonly clock: Clock;
  readonly log: Log;
  /** Throws where nobody can tell. */
  readonly resolve: (name: string) => Promise<ResolvedName>;
  /** A name has these addresses now; empty when nobody asks for it any more. */
  readonly found: (name: string, addresses: readonly string[]) => void;
}

/** Keeps host names of gateways resolved. */
export interface GatewayNames {
  /** Resolves exactly these names from now on. */
  follow(names: readonly string[]): void;
  /** Resolves when every name that is followed has been asked about once. */
  asked(): Promise<void>;
  stop(): void;
}

/** Answers are asked again when they run out: not sooner, lest a short life of theirs push to all proxies, and not later (Istio's bounds). */
const MIN_TTL_MS = 30_000;
const MAX_TTL_MS = 3_600_000;
/** While a name never had an address, endpoints behind it cannot be reached: soon again. */
const FIRST_RETRY_MS = 5_000;

interface Followed {
  addresses: readonly string[] | undefined;
  failed: boolean;
  cancel: () => void;
  first: Promise<void>;
}

/**
 * Follows names. An answer stays in force until there is a better one: a server that fails, or that knows no address any more, takes nothing
 * away, since endpoints that may be gone are worth more than none.
 */
export function createGatewayNames({ clock, log, resolve, found }: GatewayNamesOptions): GatewayNames {
  const followed = new Map<string, Followed>();

  const ask = async (name: string, entry: Followed): Promise<void> => {
    const answer = await resolve(name).catch((error: unknown) => messageOf(error));
    if (followed.get(name) !== entry) return;
    const fault = typeof answer === "string" ? answer : answer.addresses.length === 0 ? "it has no address" : undefined;
    if (typeof answer !== "string" && fault === undefined) {
      const addresses = [...new Set(answer.addresses)].sort();
      if (addresses.join() !== entry.addresses?.join()) found(name, addresses);
      entry.addresses = addresses;
    } else if (!entry.failed) {
      const kept = entry.addresses === undefined ? "nothing behind it can be reached" : "its last addresses stay in force";
      log.warn({ name, reason: fault }, `the gateway ${name} cannot be resolved; ${kept}`);
    }
    entry.failed = fault !== undefined;
    const ttlMs = typeof answer === "string" ? 0 : answer.ttlMs;
    const wait = entry.addresses === undefined ? FIRST_RETRY_MS : Math.min(Math.max(ttlMs, MIN_TTL_MS), MAX_TTL_MS);
    entry.cancel = clock.after(wait, () => void ask(name, entry));
  };

  const drop = (name: string, entry: Followed): void => {
    entry.cancel();
    followed.delete(name);
  };

  return {
    follow(names) {
      for (const [name, entry] of followed) {
        if (names.includes(name)) continue;
        drop(name, entry);
        found(name, []);
      }
      for (const name of names) {
        if (followed.has(name)) continue;
        const entry: Followed = { addresses: undefined, failed: false, cancel: () => {}, first: Promise.resolve() };
        followed.set(name, entry);
        entry.first = ask(name, entry);
      }
    },
    asked: async () => {
      await Promise.all([...followed.values()].map(({ first }) => first));
    },
    stop() {
      for (const [name, entry] of followed) drop(name, entry);
    },
  };
}
