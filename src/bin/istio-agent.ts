import { execFile } from "node:child_process";
import { hostname, networkInterfaces } from "node:os";
import { resolve } from "node:path";
import { text } from "node:stream/consumers";
import { startAgent } from "../agent/agent.ts";
import { type AgentHost, readAgentConfig } from "../agent/agent-config.ts";
import { COMMANDS } from "../agent/commands.ts";
import { addressOf } from "../agent/control-plane-address.ts";
import { type AgentProxyType, type Metadata, unreadMetadata } from "../agent/node-identity.ts";
import { readProxyFlags } from "../agent/proxy-flags.ts";
import { unreadLines } from "../agent/sidecar-env.ts";
import { systemClock } from "../base/clock.ts";
import { EdgeError, messageOf } from "../base/errors.ts";
import { createLog } from "../base/log.ts";
import { outliveReaders } from "../base/lost-readers.ts";
import { ISTIO_API_VERSION, VERSION } from "../serve/generate-settings.ts";
import { ignoredAgentVariables } from "../settings/ignored-agent-variables.ts";
import { baseDirOf, unknownSettings } from "../settings/read-settings.ts";

const HELP = `istio-agent: runs beside a workload: its certificate, its Envoy and Envoy's configuration

usage: istio-agent [proxy] [sidecar|router|waypoint] [flags]   (--proxyLogLevel, --log_output_level and others of Istio's agent)
       istio-agent doctor             looks for what keeps the machine from joining the mesh
       istio-agent iptables [clean]   sends the machine's connections through Envoy, or stops doing so (--help: flags)
       istio-agent wait               ends when the proxy is ready; with status 1 where it is not in time (--timeoutSeconds, --url)
       istio-agent request METHOD PATH   asks Envoy's admin interface (--debug-port 15020: the agent)
       istio-agent bootstrap     the built-in bootstrap for node metadata on stdin (JSON), as bytes of the message

Everything else comes from the environment and var/lib/istio/envoy/sidecar.env below $ISTIO_HOME (else the working directory).
ISTIO_ADDRESS says where istiod is; without any address it is a control plane of its own on the files of etc/istio.
docs/agent.md says more, docs/settings.md lists the variables.
`;

async function main(args: readonly string[]): Promise<number> {
  const words = args[0] === "proxy" ? args.slice(1) : args;
  const [first = "", ...rest] = words;
  if (first === "--help" || first === "-h") return say(HELP, 0);
  if (first === "--version") return say(`istio-agent ${VERSION} (Istio API ${ISTIO_API_VERSION})\n`, 0);
  if (first === "bootstrap") return printBuiltIn();
  const command = COMMANDS[first];
  try {
    if (command !== undefined) return await (await command())(rest, { ...hostOf("sidecar"), print: (output) => void say(output, 0) });
    const { type, variables } = readProxyFlags(words);
    return await run(type, variables);
  } catch (error) {
    const hint = error instanceof EdgeError && error.hint !== undefined ? ` (${error.hint})` : "";
    return say(
      `istio-agent: ${messageOf(error)}${hint}\n`,
      words.length > 0 && error instanceof EdgeError && error.code === "usage" ? 2 : 1,
    );
  }
}

const hostOf = (type: AgentProxyType, flags: Readonly<Record<string, string>> = {}): AgentHost => ({
  baseDir: resolve(baseDirOf(process.env, process.cwd())),
  env: { ...process.env, ...flags },
  type,
  hostname: hostname(),
  interfaces: machineAddresses(),
  version: ISTIO_API_VERSION,
});

async function run(type: AgentProxyType, flags: Readonly<Record<string, string>>): Promise<number> {
  const config = await readAgentConfig(hostOf(type, flags));
  if (config.discovery.length === 0) return runStandalone();
  const log = createLog({ scope: "istio-agent", level: config.settings.logLevel, json: config.settings.logJson });
  const ignored = [...unknownSettings(config.env), ...ignoredAgentVariables(config.env)].sort();
  if (ignored.length > 0) log.info({ names: ignored.join(", ") }, "environment variables are not honoured and are ignored");
  if (config.isAddressAssumed)
    log.info(
      { address: config.discovery.map(addressOf).join() },
      "nobody says where istiod is (ISTIO_ADDRESS): it is called where Istio's is by default",
    );
  for (const place of await unreadLines(config.baseDir)) log.warn({ place }, "a line that is not NAME=value is ignored");
  for (const name of unreadMetadata(config.env)) log.warn({ name }, "a variable that is no JSON object is ignored");
  // The first process of a container is not ended by a signal that it does not listen for.
  let stop = (): void => process.exit(0);
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => stop());
  const agent = await startAgent({ config, clock: systemClock, log, builtInBootstrap });
  stop = agent.stop;
  process.on("SIGHUP", () => log.info("tokens, roots and files are read when they are used; there is nothing else to reload"));
  await agent.done;
  return 0;
}

/** With nobody to ask, it is a control plane itself: only then is that loaded. */
async function runStandalone(): Promise<number> {
  const { runProgram } = await import("../serve/run-program.ts");
  process.argv.splice(2);
  return runProgram({ name: "istio-agent", about: "a control plane of its own on local files", sources: [] }, process);
}

/** Made by another process: what describes Envoy's messages takes 30 MB, and is needed once. */
function builtInBootstrap(metadata: Metadata): Promise<Uint8Array> {
  return new Promise((resolvePromise, reject) => {
    const child = execFile(
      process.execPath,
      [process.argv[1] ?? "", "bootstrap"],
      { encoding: "buffer", maxBuffer: 16 * 1024 * 1024 },
      (error, stdout) => (error === null ? resolvePromise(stdout) : reject(error)),
    );
    child.stdin?.end(JSON.stringify(metadata));
  });
}

async function printBuiltIn(): Promise<number> {
  const { builtInBootstrap: build } = await import("../generate/bootstrap-built-in.ts");
  process.stdout.write(build(JSON.parse((await text(process.stdin)) || "{}")));
  return 0;
}

const machineAddresses = (): AgentHost["interfaces"] =>
  Object.entries(networkInterfaces())
    .flatMap(([name, addresses = []]) => addresses.map((one) => ({ ...one, interface: name })))
    .filter(({ internal, address }) => !internal && !address.startsWith("fe80:"))
    .sort((a, b) => (a.family < b.family ? -1 : a.family > b.family ? 1 : 0))
    .map(({ interface: name, address }) => ({ interface: name, address }));

function say(output: string, status: number): number {
  (status === 0 ? process.stdout : process.stderr).write(output);
  return status;
}

outliveReaders(process);
process.exitCode = await main(process.argv.slice(2));
