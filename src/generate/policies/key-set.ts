import { createPublicKey, type JsonWebKey } from "node:crypto";

/**
 * The text of a key set that Envoy will take, undefined where no key in it can be used: Envoy refuses the whole listener for such a set.
 * A key that stands alone is made a set of one.
 */
export function usableKeySet(text: string): string | undefined {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof json !== "object" || json === null) return undefined;
  if (!("keys" in json)) return isUsable(json) ? JSON.stringify({ keys: [json] }) : undefined;
  return Array.isArray(json.keys) && json.keys.some(isUsable) ? text : undefined;
}

function isUsable(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const key = value as JsonWebKey;
  if (key.kty === "oct") return typeof key.k === "string" && /^[\w-]+$/.test(key.k);
  try {
    createPublicKey({ key, format: "jwk" });
    return true;
  } catch {
    return false;
  }
}
