import type { Engine, Table } from "../engine/index.ts";
import type { MeshConfig } from "../gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import type { MeshNetworks } from "../gen/istio/mesh/v1alpha1/mesh_networks_pb.js";
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
  };
}
