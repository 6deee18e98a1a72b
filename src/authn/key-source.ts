import { readFile } from "node:fs/promises";
import type { Clock } from "../base/clock.ts";
import { messageOf } from "../base/errors.ts";
import type { FetchText } from "./fetch-text.ts";
import { readKeySet, type VerificationKey } from "./key-set.ts";

/** The keys of an issuer. */
export interface KeySource {
  /**
   * The keys known; with `fresh`, after asking again, because a token names one that is not among them. Rejects with a sentence where there are
   * none: then nobody is believed, never some other keys.
   */
  keys(fresh: boolean): Promise<readonly VerificationKey[]>;
}

/** Keys that stand in configuration. */
export function inlineKeys(text: string): KeySource {
  const keys = readKeySet(text);
  return { keys: () => (typeof keys === "string" ? Promise.reject(new Error(keys)) : Promise.resolve(keys)) };
}

export interface CachedKeysOptions {
  readonly read: () => Promise<string>;
  readonly clock: Clock;
  readonly times?: Partial<CacheTimes>;
}

export interface CacheTimes {
  /** Known keys are asked for again after this. */
  readonly refreshMs: number;
  /** Keys that could not be renewed for so long are no longer believed. */
  readonly staleMs: number;
  /** Strangers who make up key ids cannot make us ask more often than this. */
  readonly pauseMs: number;
}

const TIMES: CacheTimes = { refreshMs: 5 * 60_000, staleMs: 3_600_000, pauseMs: 5_000 };

/** Keys that are read from somewhere and kept. However many ask, one reading is under way. */
export function cachedKeys({ read, clock, times }: CachedKeysOptions): KeySource {
  const { refreshMs, staleMs, pauseMs } = { ...TIMES, ...times };
  let known: { readonly keys: readonly VerificationKey[]; readonly at: number } | undefined;
  let triedAt: number | undefined;
  let failure = "they were not asked for yet";
  let reading: Promise<void> | undefined;

  const renew = async (): Promise<void> => {
    triedAt = clock.monotonic();
    try {
      const keys = readKeySet(await read());
      if (typeof keys === "string") failure = keys;
      else known = { keys, at: clock.monotonic() };
    } catch (error) {
      failure = messageOf(error);
    } finally {
      reading = undefined;
    }
  };
  return {
    async keys(fresh) {
      const now = clock.monotonic();
      const age = known === undefined ? Infinity : now - known.at;
      if ((fresh || age > refreshMs) && (reading !== undefined || triedAt === undefined || now - triedAt >= pauseMs)) {
        reading ??= renew();
        if (fresh || age > staleMs) await reading;
      }
      if (known === undefined || clock.monotonic() - known.at > staleMs) throw new Error(failure);
      return known.keys;
    },
  };
}

/** Keys in a file, which may be replaced at any time. */
export const fileKeys = (path: string, clock: Clock): KeySource =>
  cachedKeys({ read: () => readFile(path, "utf8"), clock, times: { refreshMs: 1_000, pauseMs: 500 } });

/** Keys published at a URL. */
export const remoteKeys = (url: string, fetchText: FetchText, clock: Clock): KeySource => cachedKeys({ read: () => fetchText(url), clock });

/** Keys found through the issuer's discovery document (OpenID Connect Discovery 1.0). */
export function discoveredKeys(issuer: string, fetchText: FetchText, clock: Clock): KeySource {
  const read = async (): Promise<string> => {
    const document: unknown = JSON.parse(await fetchText(`${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`));
    const fields = typeof document === "object" && document !== null ? (document as Readonly<Record<string, unknown>>) : {};
    if (fields.issuer !== issuer || typeof fields.jwks_uri !== "string")
      throw new Error("its discovery document names another issuer or no keys");
    return fetchText(fields.jwks_uri);
  };
  return cachedKeys({ read, clock });
}
