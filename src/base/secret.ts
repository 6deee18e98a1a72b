import { inspect } from "node:util";

const REDACTED = "[redacted]";

/** A value that must not reach logs, dumps or messages: every way of printing it redacts, and reading it is an explicit act. */
export class Secret<T = Uint8Array> {
  readonly #value: T;

  constructor(value: T) {
    this.#value = value;
  }

  /** The value itself. Call it where it is used and nowhere earlier. */
  reveal(): T {
    return this.#value;
  }

  toString(): string {
    return REDACTED;
  }

  toJSON(): string {
    return REDACTED;
  }

  [inspect.custom](): string {
    return REDACTED;
  }
}
