import type { Caller } from "../authn/authenticator.ts";
import { canonicalAddress, formatIp, parseIp } from "../base/address.ts";
import type { Node } from "../gen/envoy/config/core/v3/base_pb.js";
import { type NodeFacts, readNode } from "../generate/proxy-view.ts";
import type { World } from "../generate/world.ts";
import type { ProxyView } from "../model/proxy.ts";
import { storedWorkloadGroup } from "../registry/stored-object.ts";
import type { DiscoveryVariant, Peer } from "../wire/discovery-stream.ts";
import { GRPC_STATUS } from "../wire/grpc-status.ts";
import { StreamRefusal } from "../xds/refusal.ts";
import type { Callers } from "./authenticated-streams.ts";

export interface ViewOptions {
  /** Those who have proved who they are. */
  readonly callers: Callers;
  /** Whether it is another cluster of the mesh than this control plane's. */
  isRemote(cluster: string): boolean;
  /** A caller is not what its node says. */
  refused(reason: "namespace" | "service account" | "cluster" | "address"): void;
  /** A proxy is who it says it is. Throws `StreamRefusal` for one that wants more than that. */
  seen(node: Node, view: NodeFacts["view"], peer: Peer): void;
  /** Keeps what is known of a proxy while it is connected. */
  kept(proxy: string, facts: object, viewed: () => ProxyView): ProxyView;
}

const NOBODY: ViewOptions = {
  callers: new WeakMap(),
  isRemote: () => false,
  refused: () => {},
  seen: () => {},
  kept: (_proxy, _facts, viewed) => viewed(),
};

/**
 * Who a proxy is. One that has proved an identity may only be what that says; one that has not is served on this machine only: a plaintext port
 * on another address demands a token.
 */
export function viewOfNode(world: World, options: ViewOptions = NOBODY): (node: Node, peer: Peer, variant?: DiscoveryVariant) => ProxyView {
  const facts = new WeakMap<Node, NodeFacts>();
  return (node, peer, variant) => {
    const caller = options.callers.get(peer);
    if (caller === undefined && !isLocal(peer.address))
      throw new StreamRefusal(
        GRPC_STATUS.UNAUTHENTICATED,
        "callers from other machines must prove who they are; the plaintext port serves this machine only",
      );
    const known = facts.get(node) ?? (caller === undefined ? factsOf(node, variant) : provenFacts(factsOf(node, variant), caller, options));
    facts.set(node, known);
    if (caller !== undefined) checkAddresses(world, { node, view: known.view }, options);
    options.seen(node, known.view, peer);
    return options.kept(known.view.id, known, () => world.view(known));
  };
}

function factsOf(node: Node, variant: DiscoveryVariant | undefined): NodeFacts {
  const read = readNode(node, variant);
  if ("refused" in read) throw new StreamRefusal(GRPC_STATUS.INVALID_ARGUMENT, read.refused);
  return read;
}

/** What the node says, where it does not contradict what the caller has proved; an account it does not name is the caller's. */
function provenFacts({ key, view }: NodeFacts, { identity, cluster }: Caller, { isRemote, refused }: ViewOptions): NodeFacts {
  const { namespace, serviceAccount } = identity;
  // People and tools call a proxy by its id, whatever its metadata say.
  const foreign = [view.namespace, namespaceInId(view.id)].find((said) => said !== "" && said !== namespace);
  if (foreign !== undefined) {
    refused("namespace");
    throw denied(`the node says namespace ${quote(foreign)}, but the caller is of ${quote(namespace)}`);
  }
  if (view.serviceAccount !== "" && view.serviceAccount !== serviceAccount) {
    refused("service account");
    throw denied(`the node says service account ${quote(view.serviceAccount)}, but the caller is ${quote(serviceAccount)}`);
  }
  // Names that stand for no cluster of ours mean this one; a token of one cluster is worth nothing in another.
  const clusterId = view.clusterId === "" && cluster !== undefined && isRemote(cluster) ? cluster : view.clusterId;
  if (cluster !== undefined && cluster !== clusterId && (isRemote(cluster) || isRemote(clusterId))) {
    refused("cluster");
    throw denied(`the node says cluster ${quote(view.clusterId)}, but the token is of ${quote(cluster)}`);
  }
  return { key: `${key}@${serviceAccount}@${clusterId}`, view: { ...view, clusterId, serviceAccount, proven: true } };
}

/** The third part is `name.namespace`; one without a namespace says nothing. */
function namespaceInId(id: string): string {
  const name = id.split("~")[2] ?? "";
  const dot = name.lastIndexOf(".");
  return dot > 0 ? name.slice(dot + 1) : "";
}

/** An address that belongs to a workload of another namespace, in the same network, is not the caller's to claim. */
function checkAddresses(world: World, { node, view }: Claimant, { refused }: ViewOptions): void {
  const { inputs, context } = world;
  for (const address of new Set([...view.addresses, view.id.split("~")[1] ?? ""].map(plainAddress))) {
    const owners = new Set(inputs.objects.keys("ownAddress", address).map(namespaceOfKey));
    if (owners.size === 0 || owners.has(view.namespace)) continue;
    const network = configuredNetwork(world, { node, view }, address);
    if (![...owners].some((namespace) => sameNetwork(context.registry.workloadAt(address, namespace)?.network, network))) continue;
    refused("address");
    throw denied(`the address ${address} belongs to a workload of another namespace`);
  }
}

/** As workloads are known by it: an IPv4 address may also be written as an IPv6 one (RFC 4291, 2.5.5.2). */
function plainAddress(text: string): string {
  const ip = parseIp(text);
  return ip?.family === 6 && ip.value >> 32n === 0xffffn ? formatIp({ family: 4, value: ip.value & 0xffff_ffffn }) : canonicalAddress(text);
}

interface Claimant {
  readonly node: Node;
  readonly view: NodeFacts["view"];
}

/**
 * The network that configuration of its namespace puts a caller in: what is known at its address, in another cluster perhaps, or the group it joins.
 * Empty where nothing says so, since what a node says itself is a claim and would take it past the check.
 */
function configuredNetwork({ inputs, context: { registry } }: World, { node, view }: Claimant, address: string): string {
  const cluster = registry.isRemote(view.clusterId) ? view.clusterId : "";
  const group = storedWorkloadGroup(inputs.objects, `WorkloadGroup/${view.namespace}/${String(node.metadata?.AUTO_REGISTER_GROUP)}`);
  return registry.workloadAt(address, view.namespace, { cluster })?.network || (group?.spec.template?.network ?? "");
}

/** Networks that are told apart may use the same addresses; one that is not named is not told apart. */
const sameNetwork = (owners: string | undefined, own: string): boolean =>
  owners === own || owners === undefined || owners === "" || own === "";

/** Keys are `Kind/namespace/name`. */
const namespaceOfKey = (key: string): string => key.split("/")[1] ?? "";

const denied = (reason: string): StreamRefusal => new StreamRefusal(GRPC_STATUS.PERMISSION_DENIED, reason);
const quote = (text: string): string => JSON.stringify(text.slice(0, 100));

/** Whether a connection comes from this machine. */
const isLocal = (address: string): boolean => /^(127\.|\[?::1\]?|\[?::ffff:127\.|unix:|\/|ipv4:127\.|ipv6:%5B::1)/.test(address);

/** Whether only this machine can call what listens there. Decided by the address that is bound: who arrives from loopback on another may have been passed on. */
export function isForThisMachine(host: string): boolean {
  const ip = parseIp(plainAddress(host));
  return host === "localhost" || (ip?.family === 4 ? ip.value >> 24n === 127n : ip?.value === 1n);
}
