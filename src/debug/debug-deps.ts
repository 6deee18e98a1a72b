import type { Clock } from "../base/clock.ts";
import type { LoadedMesh } from "../config/mesh/load-mesh.ts";
import type { ReloadChange } from "../config/mesh/reload.ts";
import type { Problem } from "../config/problem.ts";
import type { ConfigStore } from "../config/store/store-types.ts";
import type { World } from "../generate/world.ts";
import type { RoundSummary } from "../xds/rounds.ts";
import type { XdsServer } from "../xds/server.ts";

/** Mesh configuration as it stands in a running control plane. */
export interface MeshInForce {
  readonly current: LoadedMesh;
  /** Why the files on disk are not in force; empty when they are. */
  readonly problems: readonly Problem[];
  /** What is in force and does nothing, or not what it says. */
  readonly warnings: readonly Problem[];
  /** Fields on disk that wait for a restart. */
  readonly waiting: readonly ReloadChange[];
}

/** The live state that the debug pages show. They only read it. */
export interface DebugDeps {
  readonly store: Pick<ConfigStore, "list" | "origin" | "status" | "problems">;
  readonly world: Pick<World, "engine" | "context" | "providers" | "patchReport" | "problems">;
  readonly xds: Pick<XdsServer, "state" | "dump">;
  /** What came of the last push that is through; undefined where there was none. */
  lastPush(): RoundSummary | undefined;
  readonly mesh: MeshInForce;
  readonly clock: Pick<Clock, "monotonic">;
  /** Name of this control plane instance, e.g. its pod. */
  readonly instance: string;
  /** Of somebody who is shown only what concerns it; undefined: everything is shown. */
  readonly viewer?: string;
}

/** The same for somebody of one namespace: proxies and objects of others are not there. */
export const depsWithin = (deps: DebugDeps, namespace: string): DebugDeps => ({
  ...deps,
  viewer: namespace,
  xds: { dump: (id) => deps.xds.dump(id), state: () => deps.xds.state().filter(({ view }) => view?.namespace === namespace) },
  store: {
    list: () => deps.store.list().filter(({ object }) => object.namespace === namespace),
    origin: (key) => (namespaceIn(key) === namespace ? deps.store.origin(key) : undefined),
    status: (key) => (namespaceIn(key) === namespace ? deps.store.status(key) : undefined),
    problems: () => deps.store.problems().filter(({ object }) => object?.namespace === namespace),
  },
});

const namespaceIn = (key: string): string | undefined => key.split("/")[1];
