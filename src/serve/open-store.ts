import { join } from "node:path";
import type { LoadedMesh } from "../config/mesh/load-mesh.ts";
import { createLastGood } from "../config/store/last-good.ts";
import { createStore } from "../config/store/store.ts";
import type { ConfigStore } from "../config/store/store-types.ts";
import { storedPullSecrets } from "../credentials/pull-secret.ts";
import { storedCredentials } from "../credentials/stored-credentials.ts";
import { createWorld, type World } from "../generate/world.ts";
import type { PushCause } from "../xds/metrics.ts";
import type { ClusterLink } from "./cluster-link.ts";
import type { ControlPlaneOptions } from "./control-plane.ts";
import { createDescriptors, type Descriptors } from "./descriptors.ts";
import { generateSettings } from "./generate-settings.ts";
import { type KeptDocuments, openDocuments } from "./kept-documents.ts";
import type { MeshState } from "./mesh-state.ts";
import type { ControlPlaneMetrics } from "./metrics.ts";
import type { PatchLog } from "./patch-log.ts";
import { createSecretLog } from "./secret-log.ts";
import { withVault } from "./vault.ts";

export interface StoreOptions {
  readonly options: ControlPlaneOptions;
  readonly mesh: MeshState;
  readonly link: ClusterLink | undefined;
  readonly metrics: ControlPlaneMetrics;
  readonly patchLog: PatchLog;
  /** Proxies are to be told that something changed that is no object. */
  push(reason: string, cause?: PushCause): void;
}

/** Configuration, and what is worked out from it. */
export interface OpenedStore {
  readonly world: World;
  readonly store: ConfigStore;
  readonly documents: KeptDocuments;
  readonly descriptors: Descriptors;
  readonly credentials: ReturnType<typeof withVault>;
}

/** Makes the world and the store that feeds it, with the last good versions of before. Sources come later. */
export async function openStore({ options, mesh, link, metrics, patchLog, push }: StoreOptions): Promise<OpenedStore> {
  const { clock, log, baseDir } = options;
  const credentials = withVault(storedCredentials({ get: (key) => store.get(key) }), {
    ...{ baseDir, env: options.env, mesh: mesh.current, clock, log },
    changed: () => push("credentials in Vault", "secret"),
  });
  const world = createWorld(generateSettings(mesh.current), {
    patchLeftOut: patchLog.leftOut,
    credentials: credentials.source,
    pullSecrets: storedPullSecrets({ get: (key) => store.get(key) }),
    secretWithheld: createSecretLog(log, clock, metrics.secretWithheld),
    ...(link !== undefined && { mayReadSecrets: (reader) => link.mayReadSecrets(reader) }),
  });
  putMesh(world, mesh.current);
  const documents = await openDocuments({ baseDir, clock, log });
  const descriptors = createDescriptors(world.patches, documents.readings);
  const store = createStore({
    engine: world.engine,
    inputs: world.inputs,
    sources: [],
    readObject: descriptors.readObject,
    log,
    clock,
    persistence: createLastGood(join(baseDir, "var/lib/istio/last-good"), { log }),
  });
  store.selectNamespaces(mesh.current.mesh.discoverySelectors);
  await store.restore();
  return { world, store, documents, descriptors, credentials };
}

/** Puts what mesh.yaml says in force; false where that changes nothing. */
export function putMesh(world: World, { mesh, networks }: LoadedMesh): boolean {
  return world.engine.batch(() => {
    world.inputs.mesh.set("mesh", mesh);
    world.inputs.networks.set("networks", networks);
  });
}
