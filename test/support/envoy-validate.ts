import { spawn } from "node:child_process";
import { type FileHandle, mkdtemp, open, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { toBinary } from "@bufbuild/protobuf";
import { findEnvoy } from "../../src/agent/find-envoy.ts";
import { BootstrapSchema } from "../../src/gen/envoy/config/bootstrap/v3/bootstrap_pb.js";
import type { ResourceSet } from "../../src/wire/encoded.ts";
import { staticBootstrap } from "./static-bootstrap.ts";

/** What one proxy is offered, under a name that tells a reader of a failure where to look. */
export interface Offer {
  readonly label: string;
  readonly resources: ReadonlyMap<string, ResourceSet>;
}

/** Fails with Envoy's own words if real Envoy refuses anything that a proxy is offered. */
export const assertEnvoyAccepts = (resources: ReadonlyMap<string, ResourceSet>): Promise<void> =>
  assertEnvoyAcceptsAll([{ label: "proxy", resources }]);

/**
 * The same for many proxies in as few runs as possible. `--mode validate` loads no dynamic resources, so all are put into one static
 * bootstrap; when it is refused, halves are tried until the offenders are known.
 */
export async function assertEnvoyAcceptsAll(offers: readonly Offer[]): Promise<void> {
  const refusals = await refusalsOf(offers);
  if (refusals.length > 0)
    throw new Error(`Envoy refuses what is offered to\n${refusals.map(({ label, reason }) => `${label}: ${reason}`).join("\n")}`);
}

interface Refusal {
  readonly label: string;
  readonly reason: string;
}

const BATCH = 40;

async function refusalsOf(offers: readonly Offer[]): Promise<readonly Refusal[]> {
  if (offers.length === 0) return [];
  if (offers.length > BATCH) return [...(await refusalsOf(offers.slice(0, BATCH))), ...(await refusalsOf(offers.slice(BATCH)))];
  const { bootstrap, faults } = staticBootstrap(offers);
  if (faults.length > 0) return faults;
  const reason = await validate(toBinary(BootstrapSchema, bootstrap));
  if (reason === undefined) return [];
  const [only] = offers;
  if (offers.length === 1 && only !== undefined) return [{ label: only.label, reason }];
  const half = Math.ceil(offers.length / 2);
  const found = [...(await refusalsOf(offers.slice(0, half))), ...(await refusalsOf(offers.slice(half)))];
  return found.length > 0 ? found : [{ label: offers.map(({ label }) => label).join(", "), reason }];
}

const LONGEST_REASON = 4_000;

/** Runs Envoy on a bootstrap; gives what it says against it, or nothing. Binary, so that nothing is lost on the way. */
async function validate(bootstrap: Uint8Array): Promise<string | undefined> {
  const dir = await mkdtemp(join(tmpdir(), "envoy-validate-"));
  const [file, log] = [join(dir, "bootstrap.pb"), join(dir, "log")];
  try {
    await writeFile(file, bootstrap);
    const output = await open(log, "a");
    const ended = await run(["--mode", "validate", "-c", file, "-l", "error"], output);
    await output.close();
    const said = await readFile(log, "utf8");
    // Envoy 1.40 ends badly after a good verdict where access loggers share a scope of statistics; a running server does not.
    if (ended === 0 || said.includes(`configuration '${file}' OK`)) return undefined;
    return `${ended}: ${said.trim().slice(0, LONGEST_REASON)}`;
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

/** Its output goes to a file: access logs open /dev/stdout, which cannot be opened when it is one of Node's sockets. */
function run(args: readonly string[], { fd }: FileHandle): Promise<number | NodeJS.Signals | null> {
  return new Promise((resolve, reject) => {
    const child = spawn(findEnvoy(process.env), args, { stdio: ["ignore", fd, fd] });
    child.once("error", reject).once("exit", (code, signal) => resolve(code ?? signal));
  });
}
