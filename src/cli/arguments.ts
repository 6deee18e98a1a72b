import { parseArgs } from "node:util";
import { EdgeError } from "../base/errors.ts";
import type { Flag } from "./command.ts";

/** What was typed after the command, checked against its flags. */
export interface Arguments {
  readonly operands: readonly string[];
  /** Value of a flag; undefined where it was not given. */
  text(name: string): string | undefined;
  /** All values of a flag that may be repeated. */
  list(name: string): readonly string[];
  has(name: string): boolean;
  /** A port number. */
  port(name: string, fallback: number): number;
  /** One of a few words, in any case. */
  choice<const C extends string>(name: string, choices: readonly C[]): C | undefined;
}

/** Bad usage: one sentence, exit status 2. */
export const usageError = (message: string): EdgeError => new EdgeError("usage", message);

/** Reads the words after a command. An unknown flag, a missing or an unwanted value is bad usage. */
export function readArguments(words: readonly string[], flags: readonly Flag[]): Arguments {
  const options = Object.fromEntries(flags.map((flag) => [flag.name, optionOf(flag)]));
  const { tokens } = parseArgs({ args: [...words], options, strict: false, allowPositionals: true, tokens: true });
  const operands: string[] = [];
  const given = new Map<string, string[]>();
  for (const token of tokens) {
    if (token.kind === "positional") operands.push(token.value);
    if (token.kind !== "option") continue;
    const value = checkOption(token, flags);
    const values = given.get(token.name) ?? [];
    if (values.length > 0 && !flags.some((flag) => flag.name === token.name && flag.many === true))
      throw usageError(`${token.rawName} is given twice`);
    given.set(token.name, [...values, value]);
  }
  return argumentsOf(operands, given);
}

const optionOf = (flag: Flag) => ({
  type: flag.value === undefined ? ("boolean" as const) : ("string" as const),
  ...(flag.short !== undefined && { short: flag.short }),
});

interface OptionToken {
  readonly name: string;
  readonly rawName: string;
  readonly value: string | undefined;
}

function checkOption({ name, rawName, value }: OptionToken, flags: readonly Flag[]): string {
  const flag = flags.find((candidate) => candidate.name === name);
  if (flag === undefined) throw usageError(`there is no flag ${rawName}`);
  if (flag.value === undefined && value !== undefined) throw usageError(`${rawName} takes no value`);
  if (flag.value !== undefined && value === undefined) throw usageError(`${rawName} needs a value: ${flag.value}`);
  return value ?? "";
}

function argumentsOf(operands: readonly string[], given: ReadonlyMap<string, readonly string[]>): Arguments {
  const text = (name: string): string | undefined => given.get(name)?.[0];
  return {
    operands,
    text,
    list: (name) => given.get(name) ?? [],
    has: (name) => given.has(name),
    port(name, fallback) {
      const value = text(name) ?? String(fallback);
      if (!/^\d{1,5}$/.test(value) || Number(value) > 65_535)
        throw usageError(`--${name} must be a port from 0 to 65535, not ${JSON.stringify(value)}`);
      return Number(value);
    },
    choice(name, choices) {
      const value = text(name);
      if (value === undefined) return undefined;
      const chosen = choices.find((choice) => choice.toLowerCase() === value.toLowerCase());
      if (chosen === undefined) throw usageError(`--${name} must be one of ${choices.join(", ")}, not ${JSON.stringify(value)}`);
      return chosen;
    },
  };
}
