import { messageOf } from "./errors.ts";

const NOT_TLS: readonly unknown[] = ["ERR_SSL_WRONG_VERSION_NUMBER", "ERR_SSL_PACKET_LENGTH_TOO_LONG"];

/** Why there is no connection over TLS, as text. OpenSSL's own names its source files and addresses: what it means is its reason. */
export function tlsFaultOf(error: unknown): string {
  const { code, reason } = error as { readonly code?: unknown; readonly reason?: unknown };
  if (NOT_TLS.includes(code)) return "what is there does not speak TLS";
  return typeof code === "string" && code.startsWith("ERR_SSL_") && typeof reason === "string" ? `TLS failed: ${reason}` : messageOf(error);
}
