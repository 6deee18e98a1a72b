import { execFile, spawn } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { onTestFinished } from "vitest";
import type { HostCommands } from "./host-app.ts";
import { findIptables, type IptablesEnv } from "./iptables.ts";

const run = promisify(execFile);

/** A machine of a test: a network namespace with an address on a network shared with the others, and programs in it. */
export interface MeshHost {
  readonly name: string;
  readonly address: string;
  /** Empty unless the network has IPv6. */
  readonly address6: string;
  /** Words to put before a command so that it runs there. */
  readonly enter: readonly string[];
  /** Runs `istio-agent iptables` there and gives what it printed. */
  iptables(...flags: readonly string[]): Promise<string>;
  /** Tells the programs of the host to do something. */
  ask<K extends keyof HostCommands>(command: K, ask: HostCommands[K]["ask"]): Promise<HostCommands[K]["answer"]>;
}

/** The user Envoy runs as, whose own connections are not sent back to it. */
export const PROXY_USER = 1337;

/** Runs a script of Node on a host as the user whose connections are not intercepted, and gives what it printed. */
export async function runAsProxy({ enter }: MeshHost, script: string): Promise<string> {
  const user = String(PROXY_USER);
  const asUser = ["setpriv", "--reuid", user, "--regid", user, "--clear-groups"];
  const [command = "", ...words] = [...enter, ...asUser, process.execPath, "-e", script];
  return (await run(command, words)).stdout;
}

/** Why hosts cannot be made here; undefined where they can. */
export function hostsImpossible(): string | undefined {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return "network namespaces need root on Linux";
  const iptables = findIptables();
  return typeof iptables === "string" ? iptables : undefined;
}

let networks = 0;

export interface NetworkOptions {
  readonly ipv6?: boolean;
  /** Flags of `istio-agent iptables`; null: nothing is intercepted yet. */
  readonly flags?: readonly string[] | null;
}

/** Makes hosts on a network of their own, with the rules that send all TCP in and out of them through their Envoys. They go with the test. */
export async function startHosts<N extends string>(
  names: readonly N[],
  { ipv6 = false, flags = [] }: NetworkOptions = {},
): Promise<Readonly<Record<N, MeshHost>>> {
  const iptables = findIptables();
  if (typeof iptables === "string") throw new Error(iptables);
  networks += 1;
  const prefix = `istio-${process.pid}-${networks}`;
  const hub = `${prefix}-hub`;
  await addNamespace(hub);
  await inside(hub, "ip link add hub type bridge", "ip link set hub up", "ip address add 10.77.0.1/16 dev hub");
  if (ipv6) await inside(hub, "ip -6 address add fd77::1/64 dev hub nodad");
  const hosts: Partial<Record<N, MeshHost>> = {};
  for (const [index, name] of names.entries()) {
    const host = await startHost({
      name,
      namespace: `${prefix}-${name}`,
      hub,
      address: `10.77.1.${index + 1}`,
      address6: ipv6 ? `fd77::1:${index + 1}` : "",
      env: iptables,
    });
    if (flags !== null) await host.iptables(...flags);
    hosts[name] = host;
  }
  return hosts as Record<N, MeshHost>;
}

interface HostPlan {
  readonly name: string;
  readonly namespace: string;
  readonly hub: string;
  readonly address: string;
  readonly address6: string;
  readonly env: IptablesEnv;
}

async function startHost({ name, namespace, hub, address, address6, env }: HostPlan): Promise<MeshHost> {
  await addNamespace(namespace);
  await run("ip", ["link", "add", "eth0", "netns", namespace, "type", "veth", "peer", "name", name, "netns", hub]);
  await inside(hub, `ip link set ${name} master hub up`);
  await inside(
    namespace,
    "ip link set lo up",
    "ip link set eth0 up",
    `ip address add ${address}/16 dev eth0`,
    "ip route add default via 10.77.0.1",
  );
  if (address6 !== "") await inside(namespace, `ip -6 address add ${address6}/64 dev eth0 nodad`, "ip -6 route add default via fd77::1");
  const enter = ["ip", "netns", "exec", namespace];
  const agent = [...enter.slice(1), process.execPath, join(import.meta.dirname, "../../dist/istio-agent.mjs")];
  const iptables = async (...flags: readonly string[]): Promise<string> =>
    (await run("ip", [...agent, "iptables", ...flags, "-u", String(PROXY_USER)], { env: { ...process.env, ...env } })).stdout;
  return { name, address, address6, enter, iptables, ask: await startApp(enter) };
}

async function addNamespace(namespace: string): Promise<void> {
  await run("ip", ["netns", "add", namespace]);
  onTestFinished(async () => void (await run("ip", ["netns", "del", namespace])));
}

async function inside(namespace: string, ...commands: readonly string[]): Promise<void> {
  for (const command of commands) await run("ip", ["netns", "exec", namespace, ...command.split(" ")]);
}

interface Reply {
  readonly id: number;
  readonly answer?: never;
  readonly error?: string;
}

/** Starts the programs of a host; resolves when they listen to us. */
async function startApp(enter: readonly string[]): Promise<MeshHost["ask"]> {
  const [command = "", ...words] = [...enter, process.execPath, join(import.meta.dirname, "host-app.ts")];
  const child = spawn(command, words, { stdio: ["ignore", "inherit", "inherit", "ipc"] });
  const waiting = new Map<number, { resolve(answer: never): void; reject(error: Error): void }>();
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const ready = new Promise<void>((resolve) => child.once("message", () => resolve()));
  child.on("message", ({ id, answer, error }: Reply) => {
    if (error === undefined) waiting.get(id)?.resolve(answer as never);
    else waiting.get(id)?.reject(new Error(error));
    waiting.delete(id);
  });
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await exited;
  });
  await ready;
  let last = 0;
  return (name, ask) =>
    new Promise((resolve, reject) => {
      last += 1;
      waiting.set(last, { resolve, reject });
      child.send({ id: last, command: name, ask });
    });
}
