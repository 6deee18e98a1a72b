import type { Place } from "../../checks/place.ts";
import { isRecord } from "../../parse/reading.ts";

/** Members of a JSON Web Key that only a private or symmetric key has (RFC 7518, section 6). */
const PRIVATE_MEMBERS: readonly string[] = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"];
/** Members a key must have, by its type. */
const KEY_MEMBERS: Readonly<Record<string, readonly string[]>> = { RSA: ["n", "e"], EC: ["crv", "x", "y"], OKP: ["crv", "x"], oct: ["k"] };

/** Keys given in place. Their content never goes into a message. */
export function checkJwks(text: string, place: Place): void {
  const keys = keysOf(text);
  if (keys === undefined) {
    place.fault("field.invalid", "must be a JSON Web Key Set");
    return;
  }
  for (const [index, key] of keys.entries()) {
    if (!isKey(key)) place.fault("field.invalid", `key ${index} is not a JSON Web Key`);
    else if (PRIVATE_MEMBERS.some((name) => Object.hasOwn(key, name)))
      place.fault("field.ineffective", `key ${index} holds a private key; only public keys are needed here`);
  }
}

/** Where keys are fetched from: an http or https URL. */
export function jwksUriFault(text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  return url !== undefined && /^https?:\/\/[^/]/i.test(text) ? undefined : "must be an http or https URL";
}

function isKey(key: unknown): key is Readonly<Record<string, unknown>> {
  if (!isRecord(key) || typeof key.kty !== "string" || !Object.hasOwn(KEY_MEMBERS, key.kty)) return false;
  return (KEY_MEMBERS[key.kty] ?? []).every((name) => typeof key[name] === "string");
}

function keysOf(text: string): readonly unknown[] | undefined {
  try {
    const json: unknown = JSON.parse(text);
    if (!isRecord(json)) return undefined;
    if (Array.isArray(json.keys)) return json.keys;
    return Object.hasOwn(json, "kty") ? [json] : undefined;
  } catch {
    return undefined;
  }
}
