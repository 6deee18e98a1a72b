import { type ChildProcess, spawn } from "node:child_process";
import { chown, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { onTestFinished } from "vitest";
import { askAdmin } from "../../src/agent/admin-client.ts";
import { findEnvoy } from "../../src/agent/find-envoy.ts";
import { endProcess, tempDir } from "./cleanup.ts";
import { type MeshHost, PROXY_USER } from "./netns.ts";
import { freePort } from "./ports.ts";
import { eventually } from "./wait.ts";

export interface AgentRunOptions {
  readonly name: string;
  readonly namespace?: string;
  readonly serviceAccount?: string;
  readonly address: string;
  /** `host:port` of the control plane, or several. */
  readonly istiod: string;
  readonly token?: string;
  /** Root that the control plane is verified with. */
  readonly root?: Buffer | string;
  readonly labels?: Readonly<Record<string, string>>;
  /** More of ProxyConfig than the ports. */
  readonly proxyConfig?: Readonly<Record<string, unknown>>;
  readonly env?: Readonly<Record<string, string>>;
  readonly args?: readonly string[];
  /** Its base directory, where there is one already. */
  readonly home?: string;
  /** The directory it is started in; its base directory, where nothing else is said. */
  readonly startedIn?: string;
  /** The host it runs on, as the proxy's user; without one, beside the test. */
  readonly host?: MeshHost;
  /** Do not wait until it is ready. */
  readonly wait?: boolean;
  /** Where its ports come from: `freePort` by default. */
  readonly findPort?: () => Promise<number>;
}

/** A real agent process with a real Envoy, on ports and in a directory of its own. */
export interface RunningAgent {
  readonly home: string;
  readonly adminPort: number;
  readonly statusPort: number;
  readonly readinessPort: number;
  readonly log: () => string;
  readonly pid: () => number;
  readonly envoyPid: () => Promise<number>;
  admin(path: string): Promise<string>;
  stat(name: string): Promise<number>;
  /** Puts another token in place. */
  setToken(token: string): Promise<void>;
  ready(): Promise<void>;
  start(): void;
  /** Sends a signal and waits for the end. */
  stop(signal?: NodeJS.Signals): Promise<number | null>;
  kill(signal: NodeJS.Signals): void;
  /** Its exit status, when it has ended. */
  ended(): Promise<number | null>;
  /** Serial number of the workload's certificate that Envoy uses. */
  serial(): Promise<string>;
}

/** How often an agent may find that one of its ports was taken between being found and being used. */
const MOST_STARTS = 3;

/** Starts an agent and waits until its Envoy is ready. Where one of the ports it was given has been taken meanwhile, it is started on others. */
export async function startAgentProcess(options: AgentRunOptions): Promise<RunningAgent> {
  const home = options.home ?? (await tempDir());
  await put(join(home, "var/run/secrets/tokens/istio-token"), options.token);
  await put(join(home, "etc/certs/root-cert.pem"), options.root);
  if (options.host !== undefined) await giveTo(home, PROXY_USER);
  for (let starts = 1; ; starts++) {
    const { agent, isReady, hasLostPort } = agentAt(home, await findPorts(options), options);
    agent.start();
    if (options.wait === false) return agent;
    const mayTryAgain = starts < MOST_STARTS;
    const outcome = await eventually("the agent is ready", async () => (mayTryAgain && hasLostPort() ? "lost a port" : isReady()));
    if (outcome === true) return agent;
    await agent.stop();
  }
}

/** What an agent that has a join bundle is told besides: ports, of which those that ProxyConfig has stand in the bundle, and where Envoy is. */
export interface BundledAgentOptions {
  /** The directory in which the bundle was unpacked. */
  readonly home: string;
  readonly ports: AgentPorts;
  readonly dnsPort: number;
}

/** Starts an agent that knows nothing but its join bundle, and waits until its Envoy is ready. */
export async function startBundledAgent({ home, ports, dnsPort }: BundledAgentOptions): Promise<RunningAgent> {
  const env = { ...ownPorts(ports), DNS_PROXY_ADDR: `127.0.0.1:${dnsPort}` };
  const { agent } = agentAt(home, ports, { env, isBundled: true });
  agent.start();
  await agent.ready();
  return agent;
}

async function findPorts({ findPort = freePort }: AgentRunOptions): Promise<AgentPorts> {
  return { admin: await findPort(), status: await findPort(), readiness: await findPort(), prometheus: await findPort() };
}

interface PlacedAgent {
  readonly agent: RunningAgent;
  /** Throws with what is missing. */
  isReady(): Promise<true>;
  /** Whether it or its Envoy found one of its ports taken. */
  hasLostPort(): boolean;
}

/** How an agent is run: told who it is by its environment, or by a bundle alone. */
type Placement =
  | AgentRunOptions
  | ({ readonly isBundled: true; readonly env: Readonly<Record<string, string>> } & Partial<AgentRunOptions>);

function agentAt(home: string, ports: AgentPorts, options: Placement): PlacedAgent {
  const program = programOf(options, home, ports);
  const pages = pagesOf(ports, options.host);
  const envoyPid = async (): Promise<number> => Number(await readFile(join(home, "etc/istio/proxy/envoy.pid"), "utf8"));
  onTestFinished(async () => {
    const pid = await envoyPid().catch(() => 0);
    await program.stop("SIGKILL");
    if (pid > 1) endProcess(pid);
  });
  const isReady = async (): Promise<true> => {
    if (program.status() !== undefined) throw new Error(`the agent ended with ${program.status()}: ${program.log()}`);
    const answer = await pages.readiness().catch(() => "no answer");
    if (answer !== "ready\n") throw new Error(`${answer}\n${program.log()}`);
    // Envoy says that it is live a moment before its workers listen.
    if (options.env?.DISABLE_ENVOY !== "true" && (await pages.stat("listener_manager.workers_started")) !== 1)
      throw new Error("Envoy does not listen yet");
    return true;
  };
  const taken = new RegExp(`[: ](${Object.values(ports).join("|")})\\b.*(is taken by another program|Address already in use)`);
  const agent: RunningAgent = {
    home,
    adminPort: ports.admin,
    statusPort: ports.status,
    readinessPort: ports.readiness,
    ...program,
    ...pages,
    envoyPid,
    setToken: (token) => put(join(home, "var/run/secrets/tokens/istio-token"), token),
    ready: async () => void (await eventually("the agent is ready", isReady)),
  };
  return { agent, isReady, hasLostPort: () => taken.test(program.log()) };
}

interface AgentProgram extends Pick<RunningAgent, "start" | "stop" | "ended" | "kill" | "log" | "pid"> {
  /** Its exit status; undefined while it runs. */
  status(): number | undefined;
}

function programOf(options: Placement, home: string, ports: AgentPorts): AgentProgram {
  const env = { ...process.env, ...("isBundled" in options ? {} : environment(options, ports)), ISTIO_HOME: home, ...options.env };
  const user = String(PROXY_USER);
  const { host } = options;
  const enter = host === undefined ? [] : [...host.enter, "setpriv", "--reuid", user, "--regid", user, "--clear-groups"];
  const bundle = join(import.meta.dirname, "../../dist/istio-agent.mjs");
  const [command = "", ...words] = [...enter, process.execPath, "--max-semi-space-size=1", bundle, ...(options.args ?? [])];
  let child: ChildProcess | undefined;
  let written = "";
  const ended = (): Promise<number | null> =>
    new Promise((resolve) => {
      if (child === undefined || child.exitCode !== null || child.signalCode !== null) return resolve(child?.exitCode ?? null);
      child.once("exit", (code) => resolve(code));
    });
  return {
    start() {
      const started = spawn(command, words, { env, cwd: options.startedIn ?? home, stdio: ["ignore", "pipe", "pipe"] });
      for (const stream of [started.stdout, started.stderr]) stream.on("data", (chunk: Buffer) => (written += chunk.toString()));
      child = started;
    },
    stop(signal = "SIGTERM") {
      const end = ended();
      child?.kill(signal);
      return end;
    },
    ended,
    kill: (signal) => void child?.kill(signal),
    status: () => child?.exitCode ?? undefined,
    log: () => written,
    pid: () => child?.pid ?? 0,
  };
}

interface AgentPages extends Pick<RunningAgent, "admin" | "stat" | "serial"> {
  /** What the agent says of its readiness. */
  readiness(): Promise<string>;
}

/** Asks the agent and its Envoy, on the host they run on. */
function pagesOf(ports: AgentPorts, host: MeshHost | undefined): AgentPages {
  const admin = (path: string): Promise<string> =>
    host === undefined ? askAdmin(ports.admin, path) : host.ask("fetch", { url: `http://127.0.0.1:${ports.admin}${path}` });
  return {
    admin,
    async stat(name) {
      const pattern = `^${name.replaceAll(/[.|]/g, "\\$&")}$`;
      return Number(/: (\d+)/.exec(await admin(`/stats?filter=${encodeURIComponent(pattern)}`))?.[1] ?? 0);
    },
    async serial() {
      const text = await admin("/certs");
      return /"serial_number": "([0-9a-f]+)"/.exec(text.slice(text.indexOf("cert_chain")))?.[1] ?? "";
    },
    async readiness() {
      const url = `http://127.0.0.1:${ports.status}/healthz/ready`;
      return host === undefined ? (await fetch(url)).text() : host.ask("fetch", { url });
    },
  };
}

export interface AgentPorts {
  readonly admin: number;
  readonly status: number;
  readonly readiness: number;
  readonly prometheus: number;
}

function environment(options: AgentRunOptions, ports: AgentPorts): Record<string, string> {
  return {
    ISTIO_ADDRESS: options.istiod,
    POD_NAME: options.name,
    POD_NAMESPACE: options.namespace ?? "shop",
    SERVICE_ACCOUNT: options.serviceAccount ?? "default",
    INSTANCE_IP: options.address,
    PROXY_CONFIG: JSON.stringify({
      proxyAdminPort: ports.admin,
      statusPort: ports.status,
      concurrency: 1,
      terminationDrainDuration: "1s",
      ...options.proxyConfig,
    }),
    ...ownPorts(ports),
    ISTIO_META_INTERCEPTION_MODE: "NONE",
    ISTIO_METAJSON_LABELS: JSON.stringify(options.labels ?? {}),
  };
}

const ownPorts = (ports: AgentPorts): Record<string, string> => ({
  ENVOY_STATUS_PORT: String(ports.readiness),
  ENVOY_PROMETHEUS_PORT: String(ports.prometheus),
  ENVOY_PATH: findEnvoy(process.env),
});

/** Makes a directory and all that is in it somebody's. */
async function giveTo(directory: string, user: number): Promise<void> {
  await chown(directory, user, user);
  for (const entry of await readdir(directory, { recursive: true })) await chown(join(directory, entry), user, user);
}

async function put(file: string, content: Buffer | string | undefined): Promise<void> {
  if (content === undefined) return;
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, content);
}
