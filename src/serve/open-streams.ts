import type { Caller } from "../authn/authenticator.ts";
import type { Peer } from "../wire/discovery-stream.ts";
import { HEALTH_TYPE } from "../wire/type-urls.ts";
import { createNameSets, type NameSets } from "../xds/name-sets.ts";
import type { RoundSummary } from "../xds/rounds.ts";
import { createXdsServer, type XdsServer } from "../xds/server.ts";
import { logRound } from "./change-log.ts";
import { type Identity, startIdentity } from "./identity.ts";
import { openReceipts } from "./kept-receipts.ts";
import { leaseProviders, type ProxyLeases } from "./leases.ts";
import type { OpenedStore, StoreOptions } from "./open-store.ts";
import { ownBuild } from "./own-build.ts";
import { createRegistrations, type Registrations } from "./registrations.ts";
import { toldRefusals } from "./told-refusals.ts";
import { trustAnchorProvider } from "./trust-anchors.ts";
import { viewOfNode } from "./view-of-node.ts";
import { withPlaces } from "./with-places.ts";

export interface StreamsOptions extends Omit<StoreOptions, "patchLog">, Pick<OpenedStore, "world" | "store"> {
  /** A push has reached everybody it is for. */
  settled(): void;
}

/** Who calls, and what they are told. */
export interface OpenedStreams {
  readonly identity: Identity;
  readonly registrations: Registrations;
  readonly leases: ProxyLeases;
  readonly receipts: Awaited<ReturnType<typeof openReceipts>>;
  readonly xds: XdsServer;
  readonly names: NameSets;
  /** Who has proved an identity on which stream. */
  readonly callers: WeakMap<Peer, Caller>;
  /** What came of the last push that is through. */
  lastPush(): RoundSummary | undefined;
}

/** Makes the CA and the xDS server. No port is open yet. Throws `EdgeError` where what is on disk cannot be used. */
export async function openStreams(given: StreamsOptions): Promise<OpenedStreams> {
  const { options, mesh, link, metrics, world, store, push, settled } = given;
  const { clock, log, baseDir } = options;
  const { settings } = mesh.current;
  const callers = new WeakMap<Peer, Caller>();
  const secure = mesh.current.process.listen.secureGrpcAddr !== "";
  const rootsChanged = (): void => push("certificates of the CA");
  const identity = await startIdentity({
    ...{ baseDir, mesh: mesh.current, clock, log, metrics: metrics.identity, secure, cluster: link?.tokens(store), rootsChanged },
    objects: world.inputs.objects,
    rootStore: (root) => link?.rootStore(root),
    certificates: link?.certificates(),
  });
  link?.publishRoots({ roots: identity.publishedRoots, revoked: identity.revoked, selectors: () => mesh.current.mesh.discoverySelectors });
  const anchors = trustAnchorProvider({ roots: identity.roots, mesh: () => mesh.current.mesh });
  const registrations = await openRegistrations(given);
  const leases = leaseProviders(world.engine, world.providers);
  const receipts = await openReceipts({ baseDir, build: await ownBuild(), world, settings, clock, log });
  const names = createNameSets();
  let lastPush: RoundSummary | undefined;
  const viewOf = viewOfNode(world, {
    callers,
    isRemote: (one) => link?.isRemote(one) === true,
    refused: (reason) => metrics.identity.refused("xds", reason),
    seen: registrations.seen,
    kept: leases.view,
  });
  const xds = createXdsServer({
    providers: [...withPlaces(leases.providers, store), anchors],
    viewOf: toldRefusals(viewOf, { log, clock }),
    reports: { [HEALTH_TYPE]: registrations.health },
    left: registrations.left,
    clock,
    log,
    metrics: metrics.xds,
    names,
    receipts,
    settings: { admittedPerSecond: settings.admittedPerSecond, sendTimeoutMs: settings.xdsSendTimeoutMs },
    pushed(summary) {
      lastPush = summary;
      logRound(log, summary);
    },
    settled,
  });
  return { identity, registrations, leases, receipts, xds, names, callers, lastPush: () => lastPush };
}

const openRegistrations = ({ options, mesh, link, metrics, world, store, push }: StreamsOptions): Promise<Registrations> =>
  createRegistrations({
    baseDir: options.baseDir,
    settings: mesh.current.settings,
    store: () => store,
    board: (self) => link?.registrations(self),
    clock: options.clock,
    log: options.log,
    note: metrics.registration,
    healthChanged(key, healthy) {
      const { health } = world.inputs;
      if (world.engine.batch(() => (healthy === undefined ? health.delete(key) : health.set(key, healthy))))
        push("health of a workload", "endpoint");
    },
  });
