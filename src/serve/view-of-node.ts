import type { Node } from "../gen/envoy/config/core/v3/base_pb.js";
import { type NodeFacts, readNode } from "../generate/proxy-view.ts";
import type { World } from "../generate/world.ts";
import type { ProxyView } from "../model/proxy.ts";
import type { Peer } from "../wire/discovery-stream.ts";
import { GRPC_STATUS } from "../wire/grpc-status.ts";
import { StreamRefusal } from "../xds/refusal.ts";

/**
 * Who a proxy is. Until callers can prove an identity, only those on this machine are served: a plaintext port on another address
 * demands a token, and nobody can show one yet.
 */
export function viewOfNode(world: World): (node: Node, peer: Peer) => ProxyView {
  const facts = new WeakMap<Node, NodeFacts>();
  return (node, peer) => {
    if (!isLocal(peer.address))
      throw new StreamRefusal(
        GRPC_STATUS.UNAUTHENTICATED,
        "callers from other machines must prove who they are; the plaintext port serves this machine only",
      );
    const known = facts.get(node) ?? factsOf(node);
    facts.set(node, known);
    return world.view(known);
  };
}

function factsOf(node: Node): NodeFacts {
  const read = readNode(node);
  if ("refused" in read) throw new StreamRefusal(GRPC_STATUS.INVALID_ARGUMENT, read.refused);
  node.extensions = []; // Envoy lists some 500, the same for every proxy of a build: what matters of them is in the facts, shared.
  return read;
}

const isLocal = (address: string): boolean => /^(127\.|\[?::1\]?|\[?::ffff:127\.|unix:|\/|ipv4:127\.|ipv6:%5B::1)/.test(address);
