import { quote } from "../../../base/quote.ts";

const ONE = "{*}";
const MANY = "{**}";
const LITERAL = /^[-A-Za-z0-9._~!$&'()+,;=:@%]+$/;

/** Paths are texts with `*` at an end, or templates where `{*}` stands for one segment and one `{**}` for many, as Envoy's URI templates. */
export function pathTemplateFault(path: string): string | undefined {
  if (!path.includes("{") && !path.includes("}")) return undefined;
  // Only the last may be empty: two slashes in a row end the process of an Envoy 1.40.
  const segments = path.slice(1).replace(/\/$/, "").split("/");
  const wrong = segments.find((segment) => segment !== ONE && segment !== MANY && !LITERAL.test(segment));
  if (!path.startsWith("/") || wrong !== undefined) return `${quote(path)} is not a path template: a segment is a text, {*} or {**}`;
  if (
    segments.filter((segment) => segment === MANY).length > 1 ||
    (segments.includes(MANY) && segments.lastIndexOf(ONE) > segments.indexOf(MANY))
  ) {
    return `${quote(path)} is not a path template: {**} may stand once, and no {*} behind it`;
  }
  return undefined;
}
