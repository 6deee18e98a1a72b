import { toBinary } from "@bufbuild/protobuf";
import { contentHash } from "../base/hash.ts";
import type { Engine, Table } from "../engine/index.ts";
import { type MeshConfig, MeshConfigSchema } from "../gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import { type MeshNetworks, MeshNetworksSchema } from "../gen/istio/mesh/v1alpha1/mesh_networks_pb.js";
import type { ConfigObject } from "./object.ts";
import { OBJECT_INDEXES } from "./object-indexes.ts";

/** Everything configuration is computed from. Sources put and delete here through the store; queries only read. */
export interface Inputs {
  readonly objects: Table<ConfigObject>;
  /** One row, "mesh": MeshConfig with all defaults applied. */
  readonly mesh: Table<MeshConfig>;
  /** One row, "networks"; absent where nothing is configured. */
  readonly networks: Table<MeshNetworks>;
  /** Addresses of host names that the control plane resolves itself, by name: the last good answer. */
  readonly names: Table<readonly string[]>;
  /** Keys of token issuers that the control plane fetches itself, by where they come from: the last good answer. */
  readonly keySets: Table<string>;
  /** Whether workloads are well, as their agents report, by the key of the WorkloadEntry that somebody wrote for them. */
  readonly health: Table<boolean>;
}

/** Declares the input tables on an engine. Call once per engine. */
export function defineInputs(engine: Engine): Inputs {
  return {
    objects: engine.table<ConfigObject>({
      name: "objects",
      indexes: OBJECT_INDEXES,
      same: (a, b) => a.hash === b.hash,
    }),
    mesh: engine.table<MeshConfig>({ name: "mesh" }),
    networks: engine.table<MeshNetworks>({ name: "networks" }),
    names: engine.table<readonly string[]>({ name: "names" }),
    keySets: engine.table<string>({ name: "keySets" }),
    health: engine.table<boolean>({ name: "health" }),
  };
}

type RowOf<T> = T extends Table<infer V> ? V : never;

/** What tells two rows of a table apart. */
const ROW_DIGESTS: { readonly [T in keyof Inputs]: (row: RowOf<Inputs[T]>) => string } = {
  objects: ({ hash }) => hash,
  mesh: (mesh) => contentHash(toBinary(MeshConfigSchema, mesh)),
  networks: (networks) => contentHash(toBinary(MeshNetworksSchema, networks)),
  names: (addresses) => JSON.stringify(addresses),
  keySets: contentHash,
  health: String,
};

/** Equal where everything configuration is computed from is equal, in this process and in any other. */
export function inputsDigest({ objects, mesh, networks, names, keySets, health }: Inputs): string {
  const tables = [
    linesOf(objects, ROW_DIGESTS.objects),
    linesOf(mesh, ROW_DIGESTS.mesh),
    linesOf(networks, ROW_DIGESTS.networks),
    linesOf(names, ROW_DIGESTS.names),
    linesOf(keySets, ROW_DIGESTS.keySets),
    linesOf(health, ROW_DIGESTS.health),
  ];
  return contentHash(JSON.stringify(tables));
}

function linesOf<V>(table: Table<V>, digest: (row: V) => string): readonly string[] {
  const lines: string[] = [];
  for (const [key, row] of table.rows()) lines.push(`${key} ${digest(row)}`);
  return lines.sort();
}
