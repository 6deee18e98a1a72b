import { systemClock } from "../../base/clock.ts";
import { EdgeError } from "../../base/errors.ts";
import { silentLog } from "../../base/log.ts";
import { judgeMesh, type LoadedMesh } from "../../config/mesh/load-mesh.ts";
import { type MeshFiles, readMeshFilesIn } from "../../config/mesh/mesh-files.ts";
import { meshProblemsSentence } from "../../config/mesh/mesh-problems.ts";
import { objectKey } from "../../config/object.ts";
import { readObject } from "../../config/read-object.ts";
import { createStore } from "../../config/store/store.ts";
import type { ConfigStore } from "../../config/store/store-types.ts";
import { storedCredentials } from "../../credentials/stored-credentials.ts";
import type { LeftOut } from "../../generate/patches/patched-kind.ts";
import { createWorld, type World } from "../../generate/world.ts";
import { generateSettings } from "../../serve/generate-settings.ts";
import type { Env } from "../../settings/read-settings.ts";
import { messageRegistry } from "../../wire/json.ts";
import { admittedObjects, type Objects } from "./admitted-objects.ts";
import { filesIn, layoutOf, readSources } from "./base-directory.ts";

/** What a control plane started in a directory would have in force, put together in memory. Nothing is written and no port opened. */
export interface CurrentMesh {
  readonly world: World;
  readonly store: ConfigStore;
  /** All objects in force by themselves, also of namespaces that do not count. */
  readonly objects: Objects;
  /** Where credentials are looked for: Secrets are no inputs, so they are not part of an overlay either. */
  readonly credentials: { objects: Objects };
  readonly mesh: LoadedMesh;
  readonly files: MeshFiles;
  readonly baseDir: string;
  /** Patches of EnvoyFilters that are left out, as they are found. */
  readonly leftOut: readonly LeftOut[];
  /** What of it could not be had here, a sentence each. */
  readonly notes: readonly string[];
}

const NO_FILES: MeshFiles = { layers: [], networks: undefined, faults: [], paths: [], hash: "" };

/** Reads the configuration of a directory. */
export async function currentMesh(dir: string, options: { readonly env: Env; readonly named: boolean }): Promise<CurrentMesh> {
  const layout = await layoutOf(dir, options.named);
  const files = layout.meshDir === undefined ? NO_FILES : await readMeshFilesIn(layout.meshDir);
  const load = judgeMesh(files, { baseDir: layout.baseDir, env: options.env });
  if (!load.ok) {
    throw new EdgeError("mesh_config_invalid", meshProblemsSentence(load.problems), {
      hint: "the current configuration must be in order to compare with it",
    });
  }
  const leftOut: LeftOut[] = [];
  const credentials: CurrentMesh["credentials"] = { objects: new Map() };
  const world = createWorld(generateSettings(load.config), {
    patchLeftOut: (fault) => leftOut.push(fault),
    credentials: storedCredentials({ get: (key) => credentials.objects.get(key) }),
  });
  world.engine.batch(() => {
    world.inputs.mesh.set("mesh", load.config.mesh);
    world.inputs.networks.set("networks", load.config.networks);
  });
  world.patches.use(await messageRegistry());
  const store = createStore({
    engine: world.engine,
    inputs: world.inputs,
    sources: [],
    readObject,
    log: silentLog,
    clock: systemClock,
    ...(layout.lastGood !== undefined && { persistence: layout.lastGood }),
  });
  await store.restore();
  const sources = layout.objects === undefined ? load.config.process.configSources : [filesIn(layout.objects)];
  const left = await readSources(store, sources, { maxFileBytes: load.config.settings.maxConfigFileBytes });
  const objects = new Map(store.list().map(({ object }) => [objectKey(object), object]));
  credentials.objects = admittedObjects(objects, load.config);
  world.engine.batch(() => {
    for (const key of objects.keys()) if (!credentials.objects.has(key)) world.inputs.objects.delete(key);
  });
  const broken = store.problems().filter(({ level }) => level === "error").length;
  const notes = [
    ...left.map((address) => `${address} is not read: this compares with what is on disk`),
    ...(broken === 0
      ? []
      : [`the current configuration has ${broken} ${broken === 1 ? "fault" : "faults"}; \`istioctl validate\` lists them`]),
  ];
  return { world, store, objects, credentials, mesh: load.config, files, baseDir: layout.baseDir, leftOut, notes };
}
