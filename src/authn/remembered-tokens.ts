import type { SignedToken } from "./json-web-token.ts";

/** Characters of tokens that are kept: some thousand tokens of the usual size. */
const MOST_CHARACTERS = 8 * 1024 * 1024;

/**
 * Tokens that were found good, by the header they came in: a workload shows the same one again and again, and to take it apart costs more than to look it up.
 * Nothing is decided here: times, audience and issuer are judged each time, and which key signed it is asked of the keys in force.
 */
export class RememberedTokens {
  readonly #tokens = new Map<string, SignedToken>();
  #characters = 0;

  get(header: string): SignedToken | undefined {
    return this.#tokens.get(header);
  }

  /** Keeps a token that has been verified; the oldest make room. */
  add(header: string, token: SignedToken): void {
    if (this.#tokens.has(header)) return;
    this.#tokens.set(header, token);
    this.#characters += header.length;
    for (const oldest of this.#tokens.keys()) {
      if (this.#characters <= MOST_CHARACTERS) return;
      this.#tokens.delete(oldest);
      this.#characters -= oldest.length;
    }
  }
}
