import { type ChildProcess, execFile, spawn } from "node:child_process";
import { promisify } from "node:util";
import { findIptables, type IptablesEnv } from "../../support/iptables.ts";

const run = promisify(execFile);

/**
 * The network of one node: a namespace that routes between pods, each of which has a namespace of its own with one address, and this machine.
 * All of a cluster's addresses lie in one range, to which this machine has one route; nothing else of the machine is touched.
 */
export interface NodeNetwork {
  /** Of its namespace. */
  readonly name: string;
  /** Of all addresses in it. */
  readonly range: string;
  /** The node as pods and this machine see it. */
  readonly nodeAddress: string;
  /** This machine as pods see it: where the API server is, and where probes come from. */
  readonly machineAddress: string;
  readonly podCidr: string;
  readonly serviceCidr: string;
  /** Address of the cluster's DNS among the Services. */
  readonly dnsAddress: string;
  /** The first three numbers of addresses for load balancers. */
  readonly balancerPrefix: string;
  /** What removes everything should nobody else do it. */
  readonly cleanUp: string;
  /** Words to put before a command to run it on the node. */
  readonly enter: readonly string[];
  addPod(name: string): Promise<PodNetwork>;
  /** Replaces the rules of the node: text for `iptables-restore`. */
  setRules(text: string): Promise<void>;
  remove(): Promise<void>;
}

export interface PodNetwork {
  readonly address: string;
  /** Words to put before a command to run it in the pod's network. */
  readonly enter: readonly string[];
  /** Ends whatever runs there. */
  remove(): Promise<void>;
}

/** Why there can be no nodes here; undefined where there can. */
export function nodesImpossible(): string | undefined {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return "network namespaces need root on Linux";
  const iptables = findIptables();
  return typeof iptables === "string" ? iptables : undefined;
}

const MOST = 64;
const FIRST_RANGE = 128;
/** Every pod's next hop; the same on all of them, since each has a wire of its own. */
const GATEWAY = "169.254.1.1";

/** Makes a network in a range that no other cluster on this machine uses. */
export async function createNodeNetwork(): Promise<NodeNetwork> {
  const iptables = findIptables();
  if (typeof iptables === "string") throw new Error(iptables);
  const index = await claimIndex();
  const name = `kube-${index}`;
  const range = `10.${FIRST_RANGE + index}`;
  const machineAddress = `${range}.255.1`;
  const nodeAddress = `${range}.255.2`;
  await run("ip", ["link", "add", `kube${index}`, "type", "veth", "peer", "name", "machine", "netns", name]);
  await ipBatch([], [`address add ${machineAddress}/30 dev kube${index}`, `link set kube${index} up`]);
  await ipBatch(["-n", name], ["link set lo up", `address add ${nodeAddress}/30 dev machine`, "link set machine up"]);
  await ipBatch(["-n", name], [`route add default via ${machineAddress}`]);
  await ipBatch([], [`route add ${range}.0.0/16 via ${nodeAddress}`]);
  await run("ip", ["netns", "exec", name, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"]);
  const pods = new Set<PodNetwork>();
  let last = 0;
  return {
    name,
    range: `${range}.0.0/16`,
    nodeAddress,
    machineAddress,
    podCidr: `${range}.0.0/18`,
    serviceCidr: `${range}.128.0/18`,
    dnsAddress: `${range}.128.10`,
    balancerPrefix: `${range}.192`,
    cleanUp: removalOf(name),
    enter: ["ip", "netns", "exec", name],
    async addPod(pod) {
      last += 1;
      const address = `${range}.${last >> 8}.${last & 255}`;
      const made = await addPodNetwork({ node: name, pod: `${name}-${pod}`, wire: `pod${last}`, address });
      pods.add(made);
      return { ...made, remove: () => made.remove().finally(() => pods.delete(made)) };
    },
    setRules: (text) => restoreRules(name, iptables, text),
    async remove() {
      await Promise.all([...pods].map((pod) => pod.remove()));
      await removeNamespace(name);
    },
  };
}

let joints = 0;

/** Lays a wire between two networks, so that the pods of one reach all addresses of the other. */
export async function joinNetworks(first: NodeNetwork, second: NodeNetwork): Promise<void> {
  joints += 1;
  const wire = `join${joints}`;
  await run("ip", ["link", "add", wire, "netns", first.name, "type", "veth", "peer", "name", wire, "netns", second.name]);
  for (const [own, other] of [
    [first, second],
    [second, first],
  ] as const) {
    const lines = [`address add ${own.nodeAddress} peer ${other.nodeAddress} dev ${wire}`, `link set ${wire} up`];
    await ipBatch(["-n", own.name], [...lines, `route add ${other.range} via ${other.nodeAddress} dev ${wire}`]);
  }
}

/** A namespace can be made only once, so whoever makes it owns the range with its number. */
async function claimIndex(): Promise<number> {
  for (let tries = 0; tries < MOST; tries++) {
    const index = (process.pid + tries) % MOST;
    const made = await run("ip", ["netns", "add", `kube-${index}`]).then(
      () => true,
      () => false,
    );
    if (made) return index;
  }
  throw new Error(`all ${MOST} networks for clusters are taken; \`ip netns\` lists them`);
}

interface PodPlan {
  readonly node: string;
  readonly pod: string;
  readonly wire: string;
  readonly address: string;
}

async function addPodNetwork({ node, pod, wire, address }: PodPlan): Promise<PodNetwork> {
  await run("ip", ["netns", "add", pod]);
  await run("ip", ["link", "add", "eth0", "netns", pod, "type", "veth", "peer", "name", wire, "netns", node]);
  await ipBatch(["-n", node], [`address add ${GATEWAY}/32 dev ${wire}`, `link set ${wire} up`, `route add ${address}/32 dev ${wire}`]);
  const route = [`route add ${GATEWAY} dev eth0 scope link`, `route add default via ${GATEWAY} dev eth0`];
  await ipBatch(["-n", pod], ["link set lo up", `address add ${address}/32 dev eth0`, "link set eth0 up", ...route]);
  return { address, enter: ["ip", "netns", "exec", pod], remove: () => removeNamespace(pod) };
}

async function removeNamespace(name: string): Promise<void> {
  await run("sh", ["-c", removalOf(name)]);
}

/** Ends all that runs in a namespace and in those whose names begin with its name, then removes them. */
function removalOf(name: string): string {
  // Another removal, of the pod or of all, may be doing the same: what is gone is gone.
  const each = `kill -9 $(ip netns pids $n) 2>/dev/null; ip netns del $n 2>/dev/null`;
  return `for n in $(ip netns list | cut -d' ' -f1 | grep -E '^${name}(-|$)'); do ${each}; done; true`;
}

const ipBatch = (flags: readonly string[], lines: readonly string[]): Promise<void> =>
  feed(spawn("ip", [...flags, "-batch", "-"], { stdio: ["pipe", "ignore", "pipe"] }), `${lines.join("\n")}\n`);

function restoreRules(namespace: string, iptables: IptablesEnv, text: string): Promise<void> {
  const script = "for one in iptables-nft-restore iptables-restore; do command -v $one >/dev/null && exec $one; done; exit 1";
  const env = { ...process.env, ...iptables };
  return feed(spawn("ip", ["netns", "exec", namespace, "sh", "-c", script], { env, stdio: ["pipe", "ignore", "pipe"] }), text);
}

function feed(child: ChildProcess, input: string): Promise<void> {
  return new Promise((resolve, reject) => {
    let said = "";
    child.stderr?.on("data", (chunk: Buffer) => (said += chunk.toString()));
    child.once("error", reject).once("close", (code) => {
      if (code === 0) resolve();
      else reject(new Error(`${child.spawnargs.join(" ")}: ${said.trim()}`));
    });
    child.stdin?.on("error", () => {}).end(input);
  });
}
