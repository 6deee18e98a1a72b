import { create, fromJson, type JsonValue } from "@bufbuild/protobuf";
import { loadAll } from "js-yaml";
import { invariant } from "../base/errors.ts";
import { defineInputs, type Inputs } from "../config/inputs.ts";
import type { Report } from "../config/kind-def.ts";
import { KINDS } from "../config/kinds/index.ts";
import { type ConfigObject, objectKey } from "../config/object.ts";
import { formatPath } from "../config/problem.ts";
import { createEngine, type Engine } from "../engine/index.ts";
import { MeshConfigSchema } from "../gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import { MeshNetworksSchema } from "../gen/istio/mesh/v1alpha1/mesh_networks_pb.js";
import { createRegistry } from "./create-registry.ts";
import type { Registry } from "./registry.ts";

/** A registry over objects given as YAML, for tests. */
export interface RegistryFixture {
  readonly engine: Engine;
  readonly inputs: Inputs;
  readonly registry: Registry;
  /** Puts objects, of this cluster or another; namespace `shop` where none is written. */
  put(yaml: string, cluster?: string): void;
  remove(key: string): void;
  /** Runs of each query while `fn` runs, those that did not run left out. */
  runs(fn: () => void): Readonly<Record<string, number>>;
}

/** Makes one. `mesh` and `networks` are JSON forms of MeshConfig and MeshNetworks. */
export function registryFixture(
  yaml = "",
  world: { readonly mesh?: JsonValue; readonly networks?: JsonValue; readonly recheck?: boolean } = {},
): RegistryFixture {
  const engine = createEngine({ recheck: world.recheck ?? false });
  const inputs = defineInputs(engine);
  inputs.mesh.set("mesh", world.mesh === undefined ? create(MeshConfigSchema) : fromJson(MeshConfigSchema, world.mesh));
  if (world.networks !== undefined) inputs.networks.set("networks", fromJson(MeshNetworksSchema, world.networks));
  const registry = createRegistry(engine, inputs);
  const put = (text: string, cluster?: string): void => {
    engine.batch(() => {
      for (const read of readObjects(text)) {
        const object = cluster === undefined ? read : { ...read, cluster, hash: `${read.hash}@${cluster}` };
        inputs.objects.set(objectKey(object), object);
      }
    });
  };
  put(yaml);
  return { engine, inputs, registry, put, remove: (key) => inputs.objects.delete(key), runs: (fn) => countRuns(engine, fn) };
}

interface Document {
  readonly apiVersion?: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels?: Record<string, string>;
    readonly annotations?: Record<string, string>;
    readonly creationTimestamp?: string | Date;
  };
  readonly spec?: unknown;
}

/** Objects as the store would hold them. */
export function readObjects(text: string): readonly ConfigObject[] {
  return (loadAll(text) as (Document | undefined)[]).filter((document) => document != null).map(readObject);
}

function readObject(document: Document): ConfigObject {
  const { kind, metadata } = document;
  const def = KINDS.find((one) => one.kind === kind);
  invariant(def !== undefined, `${kind} is a kind`);
  return {
    kind,
    group: def.group,
    version: "v1",
    namespace: def.scope === "Cluster" ? "" : (metadata.namespace ?? "shop"),
    name: metadata.name,
    labels: metadata.labels ?? {},
    annotations: metadata.annotations ?? {},
    createdAt: metadata.creationTimestamp === undefined ? 0 : new Date(metadata.creationTimestamp).getTime(),
    generation: 0,
    spec: def.parse(def.body === "spec" ? document.spec : document, refuseMisread),
    hash: JSON.stringify(document),
  };
}

/** What a test writes must at least be read as meant; it may leave out what validation would ask for. */
const refuseMisread: Report = (code, path, message) => invariant(!code.startsWith("schema."), `${formatPath(path)} ${message}`);

function countRuns(engine: Engine, fn: () => void): Readonly<Record<string, number>> {
  const before = engine.stats().queries;
  fn();
  const after = Object.entries(engine.stats().queries).map(([name, stats]) => [name, stats.runs - (before[name]?.runs ?? 0)] as const);
  return Object.fromEntries(after.filter(([, runs]) => runs > 0));
}
