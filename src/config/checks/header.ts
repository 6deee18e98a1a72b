import { quote } from "../../base/quote.ts";
import { headerFormatFault, headerSignFault } from "../../model/format-operators.ts";

const TOKEN = /^[-!#$%&'*+.^_`|~A-Za-z0-9]+$/;
const PSEUDO: ReadonlySet<string> = new Set([":method", ":scheme", ":authority", ":path", ":status"]);
const STRICT = /^[-_A-Za-z0-9]+$/;
const JWT_CLAIM = /^@request\.auth\.claims(?:\..+|\[.+\])$/;
/** Control characters other than the tab. */
const CONTROL = /[^\t\P{Cc}]/u;
const ENDS_LINE = /[\0\r\n]/;
/** Bytes of the longest name and value that Envoy takes. */
const LONGEST = 16_384;
const EMPTY = "a header name must not be empty";

const isAuthority = (name: string): boolean => name.toLowerCase() === ":authority" || name.toLowerCase() === "host";

/** Whether a key of a header match means a claim of the verified token instead of a header. */
export const isJwtClaim = (name: string): boolean => JWT_CLAIM.test(name);

/** Names of headers to allow or expose: an HTTP token. */
export function headerNameFault(name: string): string | undefined {
  if (name === "") return EMPTY;
  return TOKEN.test(name) ? undefined : `${quote(name)} is not a header name`;
}

/** Texts that become part of a header, or of one that is looked for: Envoy takes all but those that would end a line. */
export function lineFault(text: string): string | undefined {
  if (ENDS_LINE.test(text)) return `${quote(text)} has a character that ends a line, which no header may hold`;
  return Buffer.byteLength(text) > LONGEST ? `must be at most ${LONGEST} bytes long` : undefined;
}

/** Names of headers that are only looked for: Istio takes any text. */
export const soughtHeaderFault = (name: string): string | undefined => (name === "" ? EMPTY : lineFault(name));

/** Keys of header matches in a VirtualService: a header, one of HTTP's pseudo headers, or `@request.auth.claims.…` for a claim of the token. */
export const headerOrClaimFault = (name: string): string | undefined =>
  isJwtClaim(name) || PSEUDO.has(name) ? undefined : headerNameFault(name);

/** Names of headers we make up ourselves: plain letters, digits, dashes and underscores. */
export function strictHeaderNameFault(name: string): string | undefined {
  if (name === "") return EMPTY;
  return STRICT.test(name) ? undefined : `${quote(name)} is not a plain header name`;
}

/** Names of headers to add, set or remove. Envoy changes no pseudo header; the host has a field of its own. */
export function headerChangeFault(name: string): string | undefined {
  if (name.toLowerCase() === "host") return "the Host header cannot be changed here";
  return name.startsWith(":") ? `${quote(name)} is a pseudo header and cannot be changed` : soughtHeaderFault(name);
}

/** The same for setting request headers, where Istio reads `:authority` and `host` as a rewrite of the authority. */
export const requestHeaderChangeFault = (name: string): string | undefined => (isAuthority(name) ? undefined : headerChangeFault(name));

/** Whether the header stands for the authority of the request. */
export const isAuthorityHeader = isAuthority;

/** Values may hold Envoy's command operators; which of them it knows, `headerOperatorFault` says. */
export const headerValueFault = (value: string): string | undefined => literalValueFault(value) ?? headerSignFault(value);

/** What of a value is not what it looks like. Istio takes operators that nobody knows, so they cost the rest of the object nothing. */
export function headerOperatorFault(value: string): string | undefined {
  const fault = headerValueFault(value) === undefined ? headerFormatFault(value) : undefined;
  return fault && `${fault}; it is taken as plain text`;
}

/** Values that are sent as they are written. */
export const literalValueFault = (value: string): string | undefined =>
  CONTROL.test(value) ? `${quote(value)} has a control character, which no header may hold` : lineFault(value);
