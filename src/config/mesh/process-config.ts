import type { MeshConfig } from "../../gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import type { ProcessFields } from "../../settings/process-fields.ts";
import type { Settings } from "../../settings/table.ts";
import type { Report } from "../kind-def.ts";
import { assumedSources, parseSourceAddress, type SourceAddress } from "./source-address.ts";

/** How this process is to run: its own part of mesh.yaml with the environment applied. A reload makes a new one. */
export interface ProcessConfig extends ProcessFields {
  /** Another control plane or CA that signs for us; empty means we do. From MeshConfig, where Istio has it. */
  readonly ca: { readonly address: string };
  /** From MeshConfig too. The earlier source wins where two hold the same object. */
  readonly configSources: readonly SourceAddress[];
}

export interface ProcessInput {
  readonly fields: ProcessFields;
  readonly mesh: MeshConfig;
  readonly settings: Settings;
  readonly baseDir: string;
}

/** Joins what the file, MeshConfig and the environment say. Listen addresses of the environment win over the file. */
export function processConfig(input: ProcessInput, report: Report): ProcessConfig {
  const { fields, mesh, settings } = input;
  return {
    ...fields,
    listen: {
      grpcAddr: settings.grpcAddr ?? fields.listen.grpcAddr,
      secureGrpcAddr: settings.secureGrpcAddr ?? fields.listen.secureGrpcAddr,
      legacyGrpcAddr: settings.legacyGrpcAddr ?? fields.listen.legacyGrpcAddr,
      httpsAddr: settings.httpsAddr ?? fields.listen.httpsAddr,
      httpAddr: settings.httpAddr ?? fields.listen.httpAddr,
      monitoringAddr: settings.monitoringAddr ?? fields.listen.monitoringAddr,
    },
    ca: { address: mesh.ca?.address ?? "" },
    configSources: mesh.configSources.length === 0 ? assumedSources(input.baseDir) : writtenSources(input, report),
  };
}

function writtenSources({ mesh, baseDir }: ProcessInput, report: Report): readonly SourceAddress[] {
  const sources: SourceAddress[] = [];
  for (const [index, { address }] of mesh.configSources.entries()) {
    const path = ["configSources", index, "address"];
    const read = parseSourceAddress(address, baseDir);
    if (typeof read === "string") report("field.invalid", path, read);
    else if (sources.some((other) => other.scheme === read.scheme && other.target === read.target)) {
      report("field.duplicate", path, `"${address}" is listed twice`);
    } else sources.push(read);
  }
  return sources;
}
