import { parsePattern, type TextPattern } from "./text-pattern.ts";

/** Who a token must be from and about. */
export interface TokenIdentity {
  readonly issuer: TextPattern;
  readonly subject: TextPattern;
}

const ANY: TextPattern = { kind: "any" };
const exact = (text: string): TextPattern => ({ kind: "exact", text });

/**
 * What `issuer/subject` means, claim by claim, because the two are separate claims of a token. The last slash divides, since issuers are
 * URLs; where there is one, an open end is that of the subject, as in Istio: `https://a.test/x*` takes no issuer `https://a.test/xyz`.
 */
export function tokenIdentity(value: string): TokenIdentity {
  const pattern = parsePattern(value);
  switch (pattern.kind) {
    case "any":
      return { issuer: ANY, subject: ANY };
    case "exact":
      return exactIdentity(pattern.text);
    case "suffix":
      return suffixIdentity(pattern.text);
    case "prefix":
      return prefixIdentity(pattern.text);
  }
}

function exactIdentity(text: string): TokenIdentity {
  const [issuer, subject] = divide(text);
  return { issuer: exact(issuer), subject: exact(subject ?? "") };
}

/** `*tail` is the end of a subject; with a slash in it, the end of an issuer and a whole subject. */
function suffixIdentity(text: string): TokenIdentity {
  const [head, subject] = divide(text);
  if (subject === undefined) return { issuer: ANY, subject: { kind: "suffix", text } };
  return { issuer: head === "" ? ANY : { kind: "suffix", text: head }, subject: exact(subject) };
}

function prefixIdentity(text: string): TokenIdentity {
  const [issuer, subject] = divide(text);
  if (subject === undefined) return { issuer: { kind: "prefix", text }, subject: ANY };
  return { issuer: exact(issuer), subject: subject === "" ? ANY : { kind: "prefix", text: subject } };
}

function divide(text: string): readonly [string, string | undefined] {
  const slash = text.lastIndexOf("/");
  return slash === -1 ? [text, undefined] : [text.slice(0, slash), text.slice(slash + 1)];
}
