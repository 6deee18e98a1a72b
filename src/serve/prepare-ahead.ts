import { create } from "@bufbuild/protobuf";
import type { Clock } from "../base/clock.ts";
import { messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { runSliced } from "../base/slice.ts";
import { NodeSchema } from "../gen/envoy/config/core/v3/base_pb.js";
import { type NodeFacts, readNode } from "../generate/proxy-view.ts";
import type { World } from "../generate/world.ts";
import type { Encoded } from "../wire/encoded.ts";
import { listenerRoutes } from "../wire/listener-routes.ts";
import { CLUSTER_TYPE, ENDPOINT_TYPE, LISTENER_TYPE, ROUTE_TYPE } from "../wire/type-urls.ts";
import { type NameSets, NO_NAMES } from "../xds/name-sets.ts";
import type { ResourceProvider, Wanted } from "../xds/provider.ts";
import type { XdsServer } from "../xds/server.ts";

export interface AheadOptions {
  readonly clock: Clock;
  readonly log: Log;
  readonly world: Pick<World, "engine" | "view" | "providers">;
  readonly xds: Pick<XdsServer, "nodes">;
  /** Its root namespace is where a sidecar is taken to be: one that sees what is meant for all. */
  readonly mesh: { readonly current: { readonly mesh: { readonly rootNamespace: string } } };
  /** Those of the streams: a set is known by its number. */
  readonly names: NameSets;
  /** Resolves when the first configuration is in force. */
  readonly loaded: Promise<void>;
  /** Proxies of before a restart are about to come back. What they hold counts, so little is worked out for them. */
  readonly proxiesAwaited: boolean;
}

/** Who comes sooner is not kept waiting by this. */
const AFTER_MS = 3_000;
/** How often is looked whether proxies have come; they then hold what they share. */
const LOOK_MS = 10_000;

/**
 * Works out what a first sidecar will need while nobody is connected, and holds it until somebody is. The first proxy of a control plane would otherwise wait for all
 * that the proxies of a mesh share: with a thousand services 0.4 s, and 20 ms are left for its own (`npm run bench -- --only streams`). Gives a stop function.
 */
export function prepareAhead({ clock, log, world, xds, mesh, names, loaded, proxiesAwaited }: AheadOptions): () => void {
  const held = world.engine.lease("what a first sidecar needs");
  let cancel: () => void = () => {};
  let stopped = false;
  const isAlone = (): boolean => !stopped && xds.nodes().length === 0;
  const after = (ms: number, next: () => void): void => {
    if (!stopped) cancel = clock.after(ms, next);
  };
  function* heldSteps(): Iterable<void> {
    const steps = aheadSteps(world, names, mesh.current.mesh.rootNamespace)[Symbol.iterator]();
    while (isAlone() && held.extend(() => steps.next()).done !== true) yield;
  }
  const work = async (): Promise<void> => {
    if (!isAlone()) return;
    try {
      await runSliced(heldSteps(), clock);
    } catch (error) {
      log.debug({ reason: messageOf(error) }, "what a first sidecar needs cannot be worked out before there is one");
    }
    after(LOOK_MS, hold);
  };
  /** Those who come are given a while to take it over. */
  const hold = (): void => {
    if (isAlone()) after(LOOK_MS, hold);
    else after(LOOK_MS, () => held.release());
  };
  if (!proxiesAwaited) void loaded.then(() => after(AFTER_MS, () => void work()));
  return () => {
    stopped = true;
    cancel();
  };
}

/** Asks for everything as the Envoy of some sidecar does: all clusters and listeners, then what those name. */
export function* aheadSteps(
  { view: viewOf, providers }: Pick<World, "view" | "providers">,
  names: NameSets,
  namespace: string,
): Iterable<void> {
  const view = viewOf(someSidecar(namespace));
  const of = (typeUrl: string): ResourceProvider | undefined => providers.find((one) => one.typeUrl === typeUrl);
  function* ask(typeUrl: string, wanted: Wanted): Generator<void, readonly Encoded[]> {
    const provider = of(typeUrl);
    if (provider === undefined) return [];
    yield* provider.prepare(view, wanted);
    return [...provider.offered(view, wanted).resources.values()];
  }
  const namesOf = of(CLUSTER_TYPE)?.companion?.namesOf ?? (() => []);
  const clusters = yield* ask(CLUSTER_TYPE, ALL);
  yield* ask(ENDPOINT_TYPE, { wildcard: false, names: names.of(clusters.flatMap(namesOf)) });
  const listeners = yield* ask(LISTENER_TYPE, ALL);
  yield* ask(ROUTE_TYPE, { wildcard: false, names: names.of(listeners.flatMap(({ body }) => listenerRoutes(body))) });
}

const ALL: Wanted = { wildcard: true, names: NO_NAMES };

/** One without labels, at an address that nobody has. */
function someSidecar(namespace: string): NodeFacts {
  const facts = readNode(create(NodeSchema, { id: `sidecar~192.0.2.1~first.${namespace}~${namespace}.svc.cluster.local` }));
  if ("refused" in facts) throw new Error(facts.refused);
  return facts;
}
