import type { Registry } from "@bufbuild/protobuf";
import { MeshConfigSchema } from "../gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import { MeshNetworksSchema } from "../gen/istio/mesh/v1alpha1/mesh_networks_pb.js";
import { shownSetting } from "../settings/shown-setting.ts";
import { messageJson } from "../wire/json.ts";
import type { Json, MeshState } from "./api-types.ts";
import type { MeshInForce } from "./debug-deps.ts";
import { problemRecord } from "./object-origin.ts";

/** What of mesh.yaml is in force, why the files on disk are not if they are not, and what waits for a restart (`/debug/mesh`). */
export function meshState({ current, problems, waiting }: MeshInForce, registry: Registry): MeshState {
  return {
    mesh: messageJson(registry, MeshConfigSchema, current.mesh) as Json,
    networks: messageJson(registry, MeshNetworksSchema, current.networks) as Json,
    process: current.process,
    settings: Object.fromEntries(Object.entries(current.settings).map(([key, value]) => [key, shownSetting(key, value)])),
    reloadProblems: problems.map(problemRecord),
    needsRestart: waiting.map(({ field, sentence }) => ({ field, sentence })),
  };
}
