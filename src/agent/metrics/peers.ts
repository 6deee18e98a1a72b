import type { Clock } from "../../base/clock.ts";
import { bodyOfResource, type DeltaRequestParts } from "../../wire/delta-frames.ts";
import { PEER_TYPE } from "../../wire/type-urls.ts";
import type { AgentSubscription } from "../xds/uplink.ts";
import { readPeerWorkload, type WorkloadFacts } from "./workload-facts.ts";

export interface PeersOptions {
  readonly clock: Clock;
  /** Says something on the stream to the control plane, where there is one. */
  say(request: Omit<DeltaRequestParts, "node">): void;
}

/** Workloads that Envoy has met, looked up one by one. */
export interface Peers {
  readonly subscription: AgentSubscription;
  /** Who runs there; undefined where nobody knows, or is not known yet. */
  at(name: string): WorkloadFacts | undefined;
  /** Asks for those not asked for before, and waits a moment for answers. */
  learn(names: Iterable<string>): Promise<void>;
  /** Whether it is not asked for, because there are too many. */
  tooMany(name: string): boolean;
  /** Peers that were met and not asked for. */
  readonly refused: number;
}

/** Peers of one Envoy that are looked up. Beyond that, workloads are not told apart any more. */
export const MOST_PEERS = 2_000;
/** How long a page of metrics waits for an answer; what has not come by then is unknown on it. */
const PATIENCE_MS = 1_000;

/** Who somebody is by certificate. */
export interface Identity {
  readonly namespace: string;
  readonly account: string;
}

/** Name of a peer as a resource: nobody else at the address is meant. IPv4 addresses of sockets for both families are written as such. */
export const peerName = ({ namespace, account }: Identity, address: string): string =>
  `${namespace}/${account}/${address.replace(/^::ffff:(?=\d+\.)/i, "")}`;

/**
 * Asks the control plane who is behind addresses, on the stream that carries Envoy's configuration, and is told of changes. What was known of a workload
 * that has gone stays: numbers that belong to it are still there.
 */
export function createPeers({ clock, say }: PeersOptions): Peers {
  const names: string[] = [];
  const asked = new Set<string>();
  const pending = new Set<string>();
  const known = new Map<string, WorkloadFacts>();
  const beyond = new Set<string>();
  let answered = Promise.withResolvers<void>();
  const settle = (name: string): void => {
    if (pending.delete(name) && pending.size === 0) answered.resolve();
  };
  return {
    subscription: {
      typeUrl: PEER_TYPE,
      names,
      onDemand: true,
      taken({ resources, removed }) {
        for (const { name, bytes } of resources) {
          known.set(name, readPeerWorkload(bodyOfResource(bytes)));
          settle(name);
        }
        for (const name of removed) settle(name);
      },
    },
    at: (name) => known.get(name),
    tooMany: (name) => asked.size >= MOST_PEERS && !asked.has(name),
    get refused() {
      return beyond.size;
    },
    async learn(wanted) {
      const fresh: string[] = [];
      for (const name of wanted) {
        if (asked.has(name)) continue;
        if (asked.size >= MOST_PEERS) {
          if (beyond.size < MOST_PEERS) beyond.add(name);
          continue;
        }
        asked.add(name);
        fresh.push(name);
      }
      if (fresh.length === 0) return;
      if (pending.size === 0) answered = Promise.withResolvers<void>();
      for (const name of fresh) pending.add(name);
      names.push(...fresh);
      say({ typeUrl: PEER_TYPE, subscribe: fresh });
      await patience(clock, answered.promise);
    },
  };
}

function patience(clock: Clock, answer: Promise<void>): Promise<void> {
  return new Promise((resolve) => {
    const cancel = clock.after(PATIENCE_MS, resolve);
    void answer.then(() => {
      cancel();
      resolve();
    });
  });
}
