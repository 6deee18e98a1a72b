import { hostname, networkInterfaces } from "node:os";
import { text } from "node:stream/consumers";
import type { Host } from "../cli/command.ts";
import { COMMANDS } from "../cli/commands/index.ts";
import { runCli } from "../cli/run-cli.ts";
import { ISTIO_API_VERSION, VERSION } from "../serve/generate-settings.ts";

/** Made when a command asks for it: one that does not is ended by the signals themselves. */
let interruption: AbortController | undefined;

function interrupted(): AbortSignal {
  const controller = interruption ?? new AbortController();
  interruption = controller;
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => controller.abort());
  return controller.signal;
}

const host: Host = {
  env: process.env,
  cwd: process.cwd(),
  version: VERSION,
  istioVersion: ISTIO_API_VERSION,
  hostname: hostname(),
  addresses: Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .filter(({ internal, address }) => !internal && !address.startsWith("fe80:"))
    .sort((a, b) => (a.family < b.family ? -1 : a.family > b.family ? 1 : 0))
    .map(({ address }) => address),
  stdin: () => text(process.stdin),
  out: (output) => process.stdout.write(output),
  err: (output) => process.stderr.write(output),
  interrupted,
};

/** A reader that went away (`istioctl … | head`) is no failure. */
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
  if (interruption === undefined) process.exit(0);
  interruption.abort();
});

process.exitCode = await runCli(process.argv.slice(2), COMMANDS, host);
