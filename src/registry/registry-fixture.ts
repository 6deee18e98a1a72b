import { create, fromJson, type JsonValue } from "@bufbuild/protobuf";
import { loadAll } from "js-yaml";
import { defineInputs, type Inputs } from "../config/inputs.ts";
import { type ConfigObject, objectKey } from "../config/object.ts";
import { createEngine, type Engine } from "../engine/index.ts";
import { MeshConfigSchema } from "../gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import { MeshNetworksSchema } from "../gen/istio/mesh/v1alpha1/mesh_networks_pb.js";
import { ServiceEntrySchema } from "../gen/istio/networking/v1alpha3/service_entry_pb.js";
import { WorkloadEntrySchema } from "../gen/istio/networking/v1alpha3/workload_entry_pb.js";
import { WorkloadGroupSchema } from "../gen/istio/networking/v1alpha3/workload_group_pb.js";
import { createRegistry } from "./create-registry.ts";
import type { Registry } from "./registry.ts";

/** A registry over objects given as YAML, for tests. */
export interface RegistryFixture {
  readonly engine: Engine;
  readonly inputs: Inputs;
  readonly registry: Registry;
  /** Puts objects; namespace `shop` where none is written. */
  put(yaml: string): void;
  remove(key: string): void;
  /** Runs of each query while `fn` runs, those that did not run left out. */
  runs(fn: () => void): Readonly<Record<string, number>>;
}

/** Makes one. `mesh` and `networks` are JSON forms of MeshConfig and MeshNetworks. */
export function registryFixture(yaml = "", world: { readonly mesh?: JsonValue; readonly networks?: JsonValue; readonly recheck?: boolean } = {}): RegistryFixture {
  const engine = createEngine({ recheck: world.recheck ?? false });
  const inputs = defineInputs(engine);
  inputs.mesh.set("mesh", world.mesh === undefined ? create(MeshConfigSchema) : fromJson(MeshConfigSchema, world.mesh));
  if (world.networks !== undefined) inputs.networks.set("networks", fromJson(MeshNetworksSchema, world.networks));
  const registry = createRegistry(engine, inputs);
  const put = (text: string): void => {
    engine.batch(() => {
      for (const object of readObjects(text)) inputs.objects.set(objectKey(object), object);
    });
  };
  put(yaml);
  return { engine, inputs, registry, put, remove: (key) => inputs.objects.delete(key), runs: (fn) => countRuns(engine, fn) };
}

const SPECS = { ServiceEntry: ServiceEntrySchema, WorkloadEntry: WorkloadEntrySchema, WorkloadGroup: WorkloadGroupSchema } as const;
const CLUSTER_SCOPED: ReadonlySet<string> = new Set(["Node", "Namespace"]);

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
  return {
    kind,
    group: "",
    version: "v1",
    namespace: CLUSTER_SCOPED.has(kind) ? "" : (metadata.namespace ?? "shop"),
    name: metadata.name,
    labels: metadata.labels ?? {},
    annotations: metadata.annotations ?? {},
    createdAt: metadata.creationTimestamp === undefined ? 0 : new Date(metadata.creationTimestamp).getTime(),
    generation: 0,
    spec: readSpec(document),
    hash: JSON.stringify(document),
  };
}

function readSpec(document: Document): unknown {
  switch (document.kind) {
    case "ServiceEntry":
    case "WorkloadEntry":
    case "WorkloadGroup":
      return fromJson<typeof SPECS[keyof typeof SPECS]>(SPECS[document.kind], (document.spec ?? {}) as JsonValue);
    case "Service":
      return document.spec;
    default:
      return document;
  }
}

function countRuns(engine: Engine, fn: () => void): Readonly<Record<string, number>> {
  const before = engine.stats().queries;
  fn();
  const after = Object.entries(engine.stats().queries).map(([name, stats]) => [name, stats.runs - (before[name]?.runs ?? 0)] as const);
  return Object.fromEntries(after.filter(([, runs]) => runs > 0));
}
