import type { Env } from "../settings/read-settings.ts";
import type { Arguments } from "./arguments.ts";

/** The process as commands see it. Tests pass a literal. */
export interface Host {
  readonly env: Env;
  /** Where relative paths begin. */
  readonly cwd: string;
  /** Version of this program, and of Istio whose API it follows. */
  readonly version: string;
  readonly istioVersion: string;
  readonly hostname: string;
  /** Addresses of this machine that others can reach, IPv4 first. */
  readonly addresses: readonly string[];
  readonly stdin: () => Promise<string>;
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
  /** Aborts when the user has had enough (Ctrl-C, or nobody reads the output any more). For commands that run until then. */
  readonly interrupted: () => AbortSignal;
}

/** One flag of a command. Without `value` it is a switch. */
export interface Flag {
  readonly name: string;
  readonly short?: string;
  /** What the value is called in the usage text. */
  readonly value?: string;
  readonly many?: true;
  readonly about: string;
}

/** What `-o` may name; each command takes some of them. */
export type OutputFormat = "table" | "short" | "text" | "json" | "yaml";

/** What a command found out. `data` is what scripts get; `text` what people read. */
export interface Outcome {
  readonly data: unknown;
  readonly text: string;
  /** 1 says that the answer is bad news (an invalid document), although the command itself worked; 2 the same where 1 has another meaning. */
  readonly exitCode?: 0 | 1 | 2;
}

/** One command. `run` returns data and prints nothing, so that every command can be asked for JSON and be tested without a terminal. */
export interface Command {
  readonly name: string;
  readonly aliases: readonly string[];
  readonly about: string;
  /** The words after the name, e.g. `[NAME[.NAMESPACE]]`. */
  readonly operands: string;
  readonly flags: readonly Flag[];
  /** Values of `-o`, the default first. */
  readonly outputs: readonly OutputFormat[];
  /** Further lines of the usage text. */
  readonly notes?: readonly string[];
  /** Exit status when something goes wrong: 2 for a command whose 1 says something else. Default: 1. */
  readonly troubleStatus?: 2;
  readonly run: (args: Arguments, host: Host) => Promise<Outcome>;
}
