import { EdgeError } from "../base/errors.ts";
import type { CallHeaders } from "../wire/grpc-channel.ts";

/** Headers that the protocol itself has. */
const RESERVED = /^(grpc-.*|content-type|te|connection|host|transfer-encoding|upgrade|keep-alive)$/;

/**
 * Headers for calls to a server, from variables: with prefix `XDS_HEADER_`, `XDS_HEADER_tenant=a` is `tenant: a`. Names are sent in lower case, as HTTP/2 has
 * them. Throws `EdgeError` for what cannot be sent.
 */
export function callHeaders(env: Readonly<Record<string, string | undefined>>, prefix: "XDS_HEADER_" | "CA_HEADER_"): CallHeaders {
  const given = Object.entries(env).flatMap(([variable, value]) => {
    if (!variable.startsWith(prefix) || value === undefined) return [];
    const name = variable.slice(prefix.length).toLowerCase();
    if (!/^[a-z0-9_.-]+$/.test(name) || RESERVED.test(name)) throw new EdgeError("usage", `${variable} names no header that can be sent`);
    if (!/^[\x20-\x7e]*$/.test(value)) throw new EdgeError("usage", `${variable}: a header can only hold printable ASCII`);
    return [[name, value]];
  });
  return Object.fromEntries(given);
}
