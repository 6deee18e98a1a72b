import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import { EdgeError } from "../../base/errors.ts";
import { loadMesh } from "../../config/mesh/load-mesh.ts";
import { meshProblemsSentence } from "../../config/mesh/mesh-problems.ts";
import type { MeshState } from "../../debug/api-types.ts";
import { type MeshConfig, MeshConfigSchema } from "../../gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import type { Arguments } from "../arguments.ts";
import type { Host } from "../command.ts";
import { baseDirOf, istiodClient } from "../istiod-client.ts";
import { at } from "../json-path.ts";

/** What of a control plane decides how machines join it. */
export interface JoinedMesh {
  readonly mesh: MeshConfig;
  /** Of istiod. */
  readonly clusterId: string;
  readonly namespace: string;
  /** Where istiod listens for machines, `host:port`; empty where it does not. */
  readonly secureGrpcAddr: string;
}

/**
 * Asks istiod what is in force there: in a cluster most of it is in a ConfigMap, and not in this machine's mesh.yaml. That counts only where istiod is this
 * machine's and does not answer.
 */
export async function joinedMesh(args: Arguments, host: Host): Promise<JoinedMesh> {
  try {
    const istiod = await istiodClient(args, host);
    const { mesh, settings, process } = await istiod.get<MeshState>("/debug/mesh");
    return {
      mesh: fromJson(MeshConfigSchema, mesh as JsonValue, { ignoreUnknownFields: true }),
      clusterId: String(settings.clusterId ?? ""),
      namespace: String(settings.podNamespace ?? ""),
      secureGrpcAddr: String(at(process as JsonValue, "listen", "secureGrpcAddr") ?? ""),
    };
  } catch (error) {
    if (!(error instanceof EdgeError) || error.code !== "control_plane_unreachable" || args.has("istiod")) throw error;
    return ofMachine(host);
  }
}

async function ofMachine(host: Host): Promise<JoinedMesh> {
  const load = await loadMesh(baseDirOf(host), host.env);
  if (!load.ok) throw new EdgeError("mesh_config_invalid", meshProblemsSentence(load.problems));
  const { mesh, settings, process } = load.config;
  return { mesh, clusterId: settings.clusterId, namespace: settings.podNamespace, secureGrpcAddr: process.listen.secureGrpcAddr };
}
