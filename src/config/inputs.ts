import { contentHash } from "../base/hash.ts";
import { type Mark, MarkSum, markOf } from "../base/mark-sum.ts";
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
const ROW_DIGESTS: { readonly [T in Exclude<keyof Inputs, "objects">]: (row: RowOf<Inputs[T]>) => string } = {
  mesh: messageText,
  networks: messageText,
  names: (addresses) => JSON.stringify(addresses),
  keySets: contentHash,
  health: String,
};

/** All that a message says. Not its bytes: these rows are told apart once a start, and a writer for all of MeshConfig would be made for it. */
function messageText(message: MeshConfig | MeshNetworks): string {
  const isNoJson = (value: unknown): boolean => typeof value === "bigint" || (typeof value === "number" && !Number.isFinite(value));
  return JSON.stringify(message, (_, value: unknown) => (isNoJson(value) ? `${typeof value} ${value}` : value));
}

/** Equal where everything configuration is computed from is equal, in this process and in any other. In steps, since there may be many rows. */
export function* inputsDigest({ objects, mesh, networks, names, keySets, health }: Inputs): Generator<void, string> {
  const sum = new MarkSum();
  yield* addRows(sum, objects, markOfObject);
  yield* addRows(sum, mesh, markBy(mesh.name, ROW_DIGESTS.mesh));
  yield* addRows(sum, networks, markBy(networks.name, ROW_DIGESTS.networks));
  yield* addRows(sum, names, markBy(names.name, ROW_DIGESTS.names));
  yield* addRows(sum, keySets, markBy(keySets.name, ROW_DIGESTS.keySets));
  yield* addRows(sum, health, markBy(health.name, ROW_DIGESTS.health));
  return sum.text;
}

const ROWS_A_STEP = 100;

function* addRows<V>(sum: MarkSum, table: Table<V>, mark: (key: string, row: V) => Mark): Iterable<void> {
  let added = 0;
  for (const [key, row] of table.rows()) {
    sum.add(mark(key, row));
    added += 1;
    if (added % ROWS_A_STEP === 0) yield;
  }
}

const markBy =
  <V>(table: string, digest: (row: V) => string): ((key: string, row: V) => Mark) =>
  (key, row) =>
    markOf(`${table} ${key} ${digest(row)}`);

/** Of thousands of objects, one changes: the others are not hashed again. */
const objectMarks = new WeakMap<ConfigObject, Mark>();

function markOfObject(key: string, object: ConfigObject): Mark {
  const known = objectMarks.get(object);
  if (known !== undefined) return known;
  const mark = markOf(`objects ${key} ${object.hash}`);
  objectMarks.set(object, mark);
  return mark;
}
