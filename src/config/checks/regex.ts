import { RE2JS } from "re2js";
import { messageOf } from "../../base/errors.ts";
import { quote } from "./quote.ts";

const LONGEST = 1024;

/** What keeps a text from being a regular expression for Envoy: it uses RE2, so JavaScript's own engine is never asked. */
export function regexFault(pattern: string): string | undefined {
  if (pattern.length > LONGEST) return `the regular expression is longer than ${LONGEST} characters`;
  return syntaxFault(pattern);
}

/** Only the syntax, where length is judged elsewhere. */
export function syntaxFault(pattern: string): string | undefined {
  try {
    RE2JS.compile(pattern);
    return undefined;
  } catch (error) {
    return `${quote(pattern)} is not a regular expression that RE2 accepts: ${messageOf(error)}`;
  }
}
