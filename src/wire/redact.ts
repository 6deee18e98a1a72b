import type { JsonValue } from "@bufbuild/protobuf";

/** Fields of Envoy's messages whose content is secret: those it marks as sensitive itself, and credentials of filters that it forgot. */
const SENSITIVE: ReadonlySet<string> = new Set([
  "privateKey",
  "privateKeyProvider",
  "pkcs12",
  "password",
  "sessionTicketKeys",
  "genericSecret",
  "backendToken",
  "users",
  "downstreamAuthPassword",
  "downstreamAuthPasswords",
  "authPassword",
  "tokenSecret",
  "hmacSecret",
  "clientSecret",
  "ISTIO_META_WASM_IMAGE_PULL_SECRET",
]);

const REDACTED = "[redacted]";
/** As bytes are written, so that it still is the JSON of the message; Envoy's own dumps say the same. */
const REDACTED_BYTES = Buffer.from(REDACTED).toString("base64");

/**
 * The JSON of a message without the secrets written into it, in either spelling of field names: users write them into EnvoyFilters as they
 * like. Where a secret only says in which file it is, that stays.
 */
export function redacted(json: JsonValue): JsonValue {
  return walk(json, false);
}

function walk(json: JsonValue, secret: boolean): JsonValue {
  if (Array.isArray(json)) return json.map((item) => walk(item, secret));
  if (typeof json !== "object" || json === null) return secret && typeof json === "string" ? REDACTED : json;
  return Object.fromEntries(
    Object.entries(json).map(([key, value]) => {
      const field = key.replaceAll(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
      if (secret && field === "inlineBytes") return [key, REDACTED_BYTES];
      return [key, PLAIN.has(field) ? value : walk(value, secret || SENSITIVE.has(field))];
    }),
  );
}

/** Parts of a secret's description that are none: where it is, what kind it is. */
const PLAIN: ReadonlySet<string> = new Set(["filename", "environmentVariable", "watchedDirectory", "sdsConfig", "name", "@type"]);
