import { RE2JS } from "re2js";
import { messageOf } from "../../base/errors.ts";

/** What keeps a text from being a regular expression for Envoy, which uses RE2. */
export function regexFault(pattern: string): string | undefined {
  try {
    RE2JS.compile(pattern);
    return undefined;
  } catch (error) {
    return `is not a regular expression that RE2 accepts: ${messageOf(error)}`;
  }
}

const compiled = new Map<string, RE2JS>();

/** Whether a pattern of Envoy's API is found in a text. Patterns are few and fixed, so they are kept. */
export function containsPattern(pattern: string, text: string): boolean {
  const expression = compiled.get(pattern) ?? RE2JS.compile(pattern);
  compiled.set(pattern, expression);
  return expression.matcher(text).find();
}
