import type { Host } from "../../src/cli/command.ts";
import { COMMANDS } from "../../src/cli/commands/index.ts";
import type { IstiodClient } from "../../src/cli/istiod-client.ts";
import { runCli } from "../../src/cli/run-cli.ts";

export interface CliResult {
  readonly status: number;
  readonly out: string;
  readonly err: string;
}

export interface CliWorld {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: string;
}

/** Runs a command line in a process of the test's making. */
export async function istioctl(words: readonly string[], world: CliWorld = {}): Promise<CliResult> {
  let out = "";
  let err = "";
  const host: Host = {
    env: world.env ?? {},
    cwd: world.cwd ?? "/nowhere",
    version: "9.8.7",
    istioVersion: "1.32.0",
    hostname: "box",
    addresses: ["192.0.2.1", "2001:db8::1"],
    stdin: async () => world.stdin ?? "",
    out: (text) => {
      out += text;
    },
    interrupted: () => new AbortController().signal,
    err: (text) => {
      err += text;
    },
  };
  const status = await runCli(words, COMMANDS, host);
  return { status, out, err };
}

/** A control plane that answers with these pages. */
export const istiodWith = (pages: Readonly<Record<string, unknown>>): IstiodClient => ({
  address: "http://istiod.test",
  async get<T>(path: string): Promise<T> {
    if (!(path in pages)) throw new Error(`no page ${path}`);
    return pages[path] as T;
  },
  post: async () => {
    throw new Error("nothing is done here");
  },
});
