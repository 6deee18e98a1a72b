import { RE2JS } from "re2js";
import { messageOf } from "../../base/errors.ts";
import { quote } from "../../base/quote.ts";

const LONGEST = 1024;

/** What keeps a text from being a regular expression for Envoy: it uses RE2, so JavaScript's own engine is never asked. */
export function regexFault(pattern: string): string | undefined {
  if (pattern.length > LONGEST) return `the regular expression is longer than ${LONGEST} characters`;
  return syntaxFault(pattern);
}

/** Proxies refuse larger programs (re2.max_program_size.error_level). Ours are counted a little larger than theirs; this is too large for certain. */
const LARGEST_PROGRAM = 40_000;

/** Only the syntax, where length is judged elsewhere. */
export function syntaxFault(pattern: string): string | undefined {
  const wide = wideEscape(pattern);
  if (wide !== undefined) return `${quote(pattern)} is not a regular expression that Envoy accepts: it matches bytes, and ${wide} is none`;
  try {
    const size = RE2JS.compile(pattern).programSize();
    return size > LARGEST_PROGRAM ? `${quote(pattern)} is too large once its repetitions are written out` : undefined;
  } catch (error) {
    return `${quote(pattern)} is not a regular expression that RE2 accepts: ${messageOf(error)}`;
  }
}

/** An escape such as `\\x{100}` that no byte has. */
function wideEscape(pattern: string): string | undefined {
  const escapes = pattern.replaceAll("\\\\", "").matchAll(/\\x\{([0-9a-fA-F]+)\}/g);
  return [...escapes].find(([, digits = ""]) => Number.parseInt(digits, 16) > 0xff)?.[0];
}
