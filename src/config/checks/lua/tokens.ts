import { quote } from "../../../base/quote.ts";
import { isLuaCharacter, isLuaNumber, LUA_ESCAPE } from "./literals.ts";

/** A word of a script. Reserved words are signs; a fault says what keeps the rest from being read. */
export interface LuaToken {
  readonly kind: "name" | "number" | "text" | "sign" | "end" | "fault";
  readonly text: string;
  readonly line: number;
}

const RESERVED: ReadonlySet<string> = new Set(
  "and break do else elseif end false for function goto if in local nil not or repeat return then true until while".split(" "),
);

/** LuaJIT counts every byte outside of ASCII as a letter. */
const NAME = /[A-Za-z_\u0080-\uffff][A-Za-z0-9_\u0080-\uffff]*/y;
/** All that LuaJIT takes for one number before it looks whether it is one; a sign belongs to it behind the letter of an exponent only. */
const NUMBER = /(?=\.?[0-9])(?:0[xX](?:[pP][-+]|[A-Za-z0-9_.\u0080-\uffff])*|(?:[eE][-+]|[A-Za-z0-9_.\u0080-\uffff])*)/y;
const SIGN = /\.\.\.|\.\.|::|[<>=~]=|[-+*/%^#<>=(){}[\];:,.]/y;
const SPACE = /[ \t\v\f]+/y;
const LINE_BREAK = /\r\n|\n\r|\n|\r/y;
const LINE_BREAKS = /\r\n|\n\r|\n|\r/g;
const REST_OF_LINE = /[^\n\r]*/y;
const LONG_OPENING = /\[(=*)\[/y;
const LONG_FAULT = /\[=/y;
const PLAIN = { '"': /[^"\\\n\r]*/y, "'": /[^'\\\n\r]*/y } as const;

/** It ends at the first zero byte; a mark of its encoding is passed over. */
function scriptOf(source: string): string {
  const end = source.indexOf("\0");
  return (end < 0 ? source : source.slice(0, end)).replace(/^\ufeff/, "");
}

/** The words of a script as Envoy hands it to LuaJIT, one after the other. */
export class LuaScanner {
  readonly #text: string;
  #at = 0;
  #line = 1;

  constructor(source: string) {
    this.#text = scriptOf(source);
    // A first line for a shell.
    if (this.#text.startsWith("#")) this.#skip(REST_OF_LINE);
  }

  /** The next word. There is none behind the end or a fault. */
  next(): LuaToken {
    if (this.#at === 0 && this.#text.startsWith("\x1b")) return this.#fault("is compiled code, not a script");
    const unfinished = this.#skipSpace();
    if (unfinished !== undefined) return this.#fault(unfinished);
    const [start, line] = [this.#at, this.#line];
    if (start >= this.#text.length) return { kind: "end", text: "", line };
    const found = this.#word();
    if (typeof found !== "string") return this.#fault(found.fault);
    return { kind: found, text: this.#text.slice(start, this.#at), line };
  }

  #fault(text: string): LuaToken {
    return { kind: "fault", text, line: this.#line };
  }

  #skip(pattern: RegExp): RegExpExecArray | undefined {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text);
    if (found !== null) this.#at = pattern.lastIndex;
    return found ?? undefined;
  }

  /** Goes on behind a text that may have several lines. */
  #skipLines(end: number): void {
    this.#line += this.#text.slice(this.#at, end).match(LINE_BREAKS)?.length ?? 0;
    this.#at = end;
  }

  #skipSpace(): string | undefined {
    for (;;) {
      if (this.#skip(LINE_BREAK) !== undefined) this.#line++;
      else if (this.#text.startsWith("--", this.#at)) {
        this.#at += 2;
        const long = this.#long();
        if (long === false) return "a comment has no end";
        if (long === undefined) this.#skip(REST_OF_LINE);
      } else if (this.#skip(SPACE) === undefined) return undefined;
    }
  }

  #word(): LuaToken["kind"] | { readonly fault: string } {
    const first = this.#text.charAt(this.#at);
    if (first === '"' || first === "'") return this.#quoted(first);
    const name = this.#skip(NAME)?.[0];
    if (name !== undefined) return RESERVED.has(name) ? "sign" : "name";
    const number = this.#skip(NUMBER)?.[0];
    if (number !== undefined) return isLuaNumber(number) ? "number" : { fault: `${quote(number)} is not a number` };
    const long = this.#long();
    if (long !== undefined) return long ? "text" : { fault: "a text in long brackets has no end" };
    if (this.#skip(LONG_FAULT) !== undefined) return { fault: 'unexpected "=" behind "["' };
    return this.#skip(SIGN) === undefined ? { fault: `unexpected ${quote(first)}` } : "sign";
  }

  /** Goes past `[[ ]]`, `[=[ ]=]` and so on: false where such a text has no end, undefined where none begins. */
  #long(): boolean | undefined {
    const opening = this.#skip(LONG_OPENING);
    if (opening === undefined) return undefined;
    const closing = `]${opening[1] ?? ""}]`;
    const end = this.#text.indexOf(closing, this.#at);
    if (end < 0) return false;
    this.#skipLines(end + closing.length);
    return true;
  }

  #quoted(delimiter: keyof typeof PLAIN): "text" | { readonly fault: string } {
    this.#at++;
    for (;;) {
      this.#skip(PLAIN[delimiter]);
      const next = this.#text.charAt(this.#at);
      if (next === delimiter) {
        this.#at++;
        return "text";
      }
      if (next !== "\\") return { fault: `a text has no end: ${delimiter} is missing in its line` };
      const start = this.#at;
      const found = this.#skip(LUA_ESCAPE);
      if (found === undefined || !isLuaCharacter(found))
        return { fault: `unknown escape ${quote(this.#text.slice(start, start + 2))} in a text` };
      const end = this.#at;
      this.#at = start;
      this.#skipLines(end);
    }
  }
}
