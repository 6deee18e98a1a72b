import { createPublicKey, type JsonWebKey } from "node:crypto";

/** Fields of a key that say which key it is; others, private parts among them, are nobody's business. */
const PUBLIC_FIELDS = ["kty", "kid", "alg", "use", "crv", "x", "y", "n", "e", "k"] as const;

/**
 * The keys of a set (or the one key) that Envoy can use, in one form for all ways to write them. Issuers give the same keys in another order each
 * time, and that must not be a change for every proxy; and Envoy refuses the whole listener for a text it cannot read, of which there are more than
 * we could not read: members that stand twice, numbers out of range. Undefined where there are no such keys.
 */
export function plainKeySet(text: string): string | undefined {
  let json: unknown;
  try {
    json = JSON.parse(text, withoutOddities);
  } catch {
    return undefined;
  }
  if (typeof json !== "object" || json === null) return undefined;
  const keys: readonly unknown[] = !("keys" in json) ? [json] : Array.isArray(json.keys) ? json.keys : [];
  const plain = keys
    .filter(isUsable)
    .map((key) => JSON.stringify(Object.fromEntries(PUBLIC_FIELDS.flatMap((field) => (field in key ? [[field, key[field]]] : [])))));
  return plain.length === 0 ? undefined : `{"keys":[${[...new Set(plain)].sort().join()}]}`;
}

/** Parts of keys that no proxy must have. */
const PRIVATE_FIELDS = ["d", "p", "q", "dp", "dq", "qi", "oth"] as const;
/** What a writer of JSON may choose: spaces between what it writes. */
const SPACED = /("(?:[^"\\]|\\.)*")|[ \t\r\n]+/g;

/** The keys that a user has written: in the user's words where Envoy reads them as we do, else in plain ones. Undefined where there are none that can be used. */
export function writtenKeySet(text: string): string | undefined {
  const plain = plainKeySet(text);
  return plain !== undefined && isWellWritten(text) ? text : plain;
}

/** Nothing but public keys that can be used, of texts, and written as we would write them but for spaces: else Envoy may read it another way, or not at all. */
function isWellWritten(text: string): boolean {
  const json = JSON.parse(text) as { readonly keys?: readonly unknown[] };
  return json.keys?.every(isAllPublic) === true && Object.keys(json).length === 1 && text.replaceAll(SPACED, "$1") === JSON.stringify(json);
}

const isAllPublic = (key: unknown): boolean =>
  isUsable(key) &&
  !PRIVATE_FIELDS.some((field) => field in key) &&
  Object.values(key)
    .flat()
    .every((value) => typeof value === "string" && value.isWellFormed());

/** Fields that are bytes. */
const BYTES: ReadonlySet<string> = new Set(["x", "y", "n", "e", "k"]);

/** As Envoy reads them: bytes may be filled up to whole groups, and an algorithm that is no text is none. */
function withoutOddities(field: string, value: unknown): unknown {
  if (field === "alg" && (typeof value !== "string" || value === "")) return undefined;
  if (typeof value !== "string") return value;
  return BYTES.has(field) ? value.replace(/={1,2}$/, "") : value.toWellFormed();
}

/** What Envoy asks of a key beyond what makes it one; the first letters of the algorithm, where it names one. */
const KINDS: Readonly<Record<string, { readonly alg: RegExp; readonly fits: (key: JsonWebKey) => boolean }>> = {
  RSA: { alg: /^(RS|PS)/, fits: ({ n, e }) => isModulus(bytesOf(n)) && isExponent(bytesOf(e)) },
  EC: {
    alg: /^ES/,
    fits: ({ crv, alg, x, y }) => {
      const own = CURVES.get(crv ?? "");
      return own !== undefined && (alg ?? own) === own && bytesOf(x).length > 0 && bytesOf(y).length > 0;
    },
  },
  OKP: { alg: /^EdDSA$/, fits: ({ crv, x }) => crv === "Ed25519" && bytesOf(x).length > 0 },
  oct: { alg: /^HS(256|384|512)$/, fits: ({ k }) => bytesOf(k).length > 0 },
};

/** Each curve has one algorithm. */
const CURVES: ReadonlyMap<string, string> = new Map([
  ["P-256", "ES256"],
  ["P-384", "ES384"],
  ["P-521", "ES512"],
]);
const SHORTEST_MODULUS = 64;

function isUsable(value: unknown): value is JsonWebKey {
  if (typeof value !== "object" || value === null) return false;
  const key = value as JsonWebKey;
  const kind = typeof key.kty === "string" ? KINDS[key.kty] : undefined;
  if (kind === undefined || !kind.fits(key)) return false;
  if (typeof key.alg === "string" && !kind.alg.test(key.alg)) return false;
  if (key.kty === "oct") return true;
  try {
    createPublicKey({ key, format: "jwk" });
    return true;
  } catch {
    return false;
  }
}

/** Bytes in the alphabet that is safe in URLs, as keys have them; none where the text has another letter. */
function bytesOf(text: unknown): Buffer {
  return typeof text === "string" && /^[\w-]+$/.test(text) ? Buffer.from(text, "base64url") : Buffer.alloc(0);
}

const isOdd = (bytes: Buffer): boolean => ((bytes.at(-1) ?? 0) & 1) === 1;
const isModulus = (bytes: Buffer): boolean => bytes.length >= SHORTEST_MODULUS && isOdd(bytes);
const isExponent = (bytes: Buffer): boolean => isOdd(bytes) && bytes.some((byte, index) => byte > (index === bytes.length - 1 ? 1 : 0));
