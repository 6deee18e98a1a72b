import { create } from "@bufbuild/protobuf";
import { type MeshConfig, MeshConfigSchema } from "../../gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import { type MeshNetworks, MeshNetworksSchema } from "../../gen/istio/mesh/v1alpha1/mesh_networks_pb.js";
import { PROCESS_FIELDS } from "../../settings/process-fields.ts";
import { type Env, isSetting, readSettings } from "../../settings/read-settings.ts";
import { readShape } from "../../settings/shape.ts";
import type { Settings } from "../../settings/table.ts";
import { trustDomainFault } from "../checks/host-name.ts";
import { placeOf } from "../checks/place.ts";
import type { Report } from "../kind-def.ts";
import { readMessage } from "../parse/read-message.ts";
import type { Problem } from "../problem.ts";
import { withMeshDefaults } from "./defaults.ts";
import { fillHeaderValues } from "./header-values.ts";
import { type JsonMap, mergeMaps } from "./merge-layers.ts";
import { type MeshFile, type MeshFiles, type MeshText, overClusterMesh, readMeshFiles } from "./mesh-files.ts";
import { MeshProblems } from "./mesh-problems.ts";
import { type ProcessConfig, processConfig } from "./process-config.ts";
import { validateMeshConfig } from "./validate-mesh-config.ts";
import { validateMeshNetworks } from "./validate-networks.ts";

/** Everything mesh.yaml, its includes, networks.yaml and the environment say, complete with defaults. */
export interface LoadedMesh {
  readonly process: ProcessConfig;
  readonly settings: Settings;
  readonly mesh: MeshConfig;
  readonly networks: MeshNetworks;
}

/** One reading of the files: all of it, or what is wrong and nothing of it. */
export type MeshLoad = MeshLoadGood | MeshLoadBad;

interface MeshLoadBase {
  /** Every file that matters, also those that are absent now. */
  readonly files: readonly string[];
  /** Changes exactly when the files do. */
  readonly hash: string;
}
export interface MeshLoadGood extends MeshLoadBase {
  readonly ok: true;
  readonly config: LoadedMesh;
  readonly warnings: readonly Problem[];
}
export interface MeshLoadBad extends MeshLoadBase {
  readonly ok: false;
  readonly problems: readonly Problem[];
}

/**
 * Reads the mesh configuration under a base directory, over what a cluster says. Absent files mean defaults; anything wrong in one file, or in the
 * cluster's part, refuses all of it.
 */
export async function loadMesh(baseDir: string, env: Env, cluster?: MeshText): Promise<MeshLoad> {
  const files = await readMeshFiles(baseDir);
  return judgeMesh(cluster === undefined ? files : overClusterMesh(files, cluster), { baseDir, env });
}

/** The decision on files already read. Pure. */
export function judgeMesh(files: MeshFiles, world: { readonly baseDir: string; readonly env: Env }): MeshLoad {
  const base = { files: files.paths, hash: files.hash };
  const problems = new MeshProblems(files);
  const config = problems.any ? undefined : readLayers(files, world, problems);
  return config === undefined || problems.any
    ? { ok: false, problems: problems.errors(), ...base }
    : { ok: true, config, warnings: problems.warnings(), ...base };
}

function readLayers(
  files: MeshFiles,
  world: { readonly baseDir: string; readonly env: Env },
  problems: MeshProblems,
): LoadedMesh | undefined {
  const inPod = (world.env.KUBERNETES_SERVICE_HOST ?? "") !== "";
  for (const file of files.layers) readParts(split(file.content), problems.reportOn(file), inPod);
  if (files.networks !== undefined)
    readMessage(MeshNetworksSchema, files.networks.content, { report: problems.reportOn(files.networks), path: [] });
  if (problems.any) return undefined;

  const report = problems.reportOnAll();
  const merged = files.layers.map((file) => split(file.content)).reduce(mergeParts, { own: {}, mesh: {}, networks: {} });
  const parts = readParts(merged, report, inPod);
  const networks = networksOf(parts.networks, files.networks, report);
  const settings = settingsOf(parts.fields.env, world.env, report);
  const mesh = withMeshDefaults({ message: parts.mesh, json: merged.mesh });
  if (settings.trustDomain !== "") {
    const fault = trustDomainFault(settings.trustDomain);
    if (fault !== undefined) report("field.host", [], `setting TRUST_DOMAIN: ${fault}`);
    mesh.trustDomain = settings.trustDomain;
  }
  if (problems.any) return undefined;

  const place = placeOf(problems.reportOnAll(mesh.extensionProviders.map(({ name }) => name)), []);
  validateMeshConfig(mesh, place);
  validateMeshNetworks(networks, place.in("meshNetworks"));
  fillHeaderValues(mesh, world.env);
  const process = processConfig({ fields: parts.fields, mesh, settings, baseDir: world.baseDir }, report);
  return { process, settings, mesh, networks };
}

/** The three things one file speaks of. */
interface Parts {
  readonly own: JsonMap;
  readonly mesh: JsonMap;
  readonly networks: JsonMap;
}

function split(content: JsonMap): Parts {
  const isOwn = (key: string): boolean => Object.hasOwn(PROCESS_FIELDS.fields, key);
  const { include: _include, meshNetworks, ...rest } = content;
  const entries = Object.entries(rest);
  return {
    own: Object.fromEntries(entries.filter(([key]) => isOwn(key))),
    mesh: Object.fromEntries(entries.filter(([key]) => !isOwn(key))),
    networks: { meshNetworks },
  };
}

const mergeParts = (base: Parts, over: Parts): Parts => ({
  own: mergeMaps(base.own, over.own),
  mesh: mergeMaps(base.mesh, over.mesh, MeshConfigSchema),
  networks: mergeMaps(base.networks, over.networks),
});

function readParts(parts: Parts, report: Report, inPod: boolean) {
  return {
    fields: readShape(PROCESS_FIELDS, parts.own, { path: [], reader: { inPod, report } }),
    mesh: readMessage(MeshConfigSchema, parts.mesh, { report, path: [] }),
    networks: readMessage(MeshNetworksSchema, parts.networks.meshNetworks ?? {}, { report, path: ["meshNetworks"] }),
  };
}

/** Networks of networks.yaml stand over those of the same name in mesh.yaml. */
function networksOf(inMesh: MeshNetworks, file: MeshFile | undefined, report: Report): MeshNetworks {
  if (file === undefined) return inMesh;
  const own = readMessage(MeshNetworksSchema, file.content, { report, path: [] });
  return create(MeshNetworksSchema, { networks: { ...inMesh.networks, ...own.networks } });
}

function settingsOf(meshEnv: Readonly<Record<string, string>>, env: Env, report: Report): Settings {
  const { settings, faults } = readSettings(env, meshEnv);
  for (const fault of faults) {
    const path = fault.from === "mesh.yaml" ? ["env", fault.name] : [];
    report("field.invalid", path, fault.from === "mesh.yaml" ? fault.message : `environment variable ${fault.name}: ${fault.message}`);
  }
  for (const name of Object.keys(meshEnv).filter((candidate) => !isSetting(candidate))) {
    report("field.ineffective", ["env", name], "is no setting of this control plane and is ignored");
  }
  return settings;
}
