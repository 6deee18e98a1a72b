import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { createFetchText, type FetchText } from "../authn/fetch-text.ts";
import type { Cidr } from "../base/address.ts";
import { blockedUnder, rangesIn } from "../base/blocked-address.ts";
import type { Clock } from "../base/clock.ts";
import type { ProxyRules } from "../base/environment-proxy.ts";
import { EdgeError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { KeyLocation } from "../generate/policies/key-location.ts";
import { plainKeySet } from "../generate/policies/key-set.ts";
import type { World } from "../generate/world.ts";
import type { Settings } from "../settings/table.ts";
import type { XdsServer } from "../xds/server.ts";
import { type FollowedKeys, followKeys } from "./followed-keys.ts";

/** Keeps the keys that RequestAuthentications name by URL in the inputs of a world. */
export interface KeySets extends Pick<FollowedKeys, "asked" | "stop"> {
  /** Configuration changed: other keys may be wanted. */
  follow(): void;
}

export interface KeySetsOptions {
  readonly baseDir: string;
  readonly world: Pick<World, "engine" | "inputs" | "keyLocations">;
  readonly xds: Pick<XdsServer, "push">;
  readonly settings: Pick<Settings, "keyRefreshMs" | "blockedKeyRanges" | "allowedKeyRanges"> & ProxyRules;
  /** Told of each fetch whether it succeeded. */
  readonly fetched: (came: boolean) => void;
  readonly clock: Clock;
  readonly log: Log;
}

/** Roots of private issuers, besides the platform's. */
const MORE_ROOTS = "etc/cacerts/extra.pem";

/** Starts to follow what policies name. Throws `EdgeError` for settings that cannot be read. */
export function createKeySets({ baseDir, world, xds, settings, fetched, clock, log }: KeySetsOptions): KeySets {
  const { keySets } = world.inputs;
  const isBlocked = blockedUnder({
    blocked: rangesOf("BLOCKED_CIDRS_IN_JWKS_URIS", settings.blockedKeyRanges),
    allowed: rangesOf("ALLOWED_CIDRS_IN_JWKS_URIS", settings.allowedKeyRanges),
  });
  const moreRoots = (): Promise<string | undefined> => readFile(join(baseDir, MORE_ROOTS), "utf8").catch(() => undefined);
  const fetchText = counted(createFetchText({ plain: true, isBlocked, moreRoots, proxies: settings }), fetched);
  const followed = followKeys({
    clock,
    log,
    refreshMs: settings.keyRefreshMs,
    read: (location) => readKeySet(location, fetchText),
    found(id, keys) {
      const changed = world.engine.batch(() => (keys === undefined ? keySets.delete(id) : keySets.set(id, keys)));
      if (changed) xds.push("keys of a token issuer");
    },
  });
  return { follow: () => followed.follow(world.keyLocations()), asked: followed.asked, stop: followed.stop };
}

/** Only what is a key set gets any further: nobody is to read other documents through us. */
async function readKeySet({ uri, issuer, timeoutMs }: KeyLocation, fetchText: FetchText): Promise<string> {
  const from = issuer === undefined ? uri : keysUri(await fetchText(uri, timeoutMs), issuer);
  const keys = plainKeySet(await fetchText(from, timeoutMs));
  if (keys === undefined) throw new Error(`${from} answers with no key that Envoy could use`);
  return keys;
}

function keysUri(document: string, issuer: string): string {
  let fields: Readonly<Record<string, unknown>> = {};
  try {
    fields = Object(JSON.parse(document)) as Readonly<Record<string, unknown>>;
  } catch {
    // Then it names nothing, which is said below.
  }
  if (fields.issuer !== issuer || typeof fields.jwks_uri !== "string")
    throw new Error(`the discovery document of ${issuer} names another issuer or no keys`);
  return fields.jwks_uri;
}

const counted =
  (fetchText: FetchText, fetched: KeySetsOptions["fetched"]): FetchText =>
  async (url, timeoutMs) => {
    let came = false;
    try {
      const text = await fetchText(url, timeoutMs);
      came = true;
      return text;
    } finally {
      fetched(came);
    }
  };

function rangesOf(name: string, text: string): readonly Cidr[] {
  const ranges = rangesIn(text);
  if (typeof ranges === "string")
    throw new EdgeError("mesh_config_invalid", `${name}: ${JSON.stringify(ranges)} is not a range of addresses`);
  return ranges;
}
