import { create } from "@bufbuild/protobuf";
import { readDocuments } from "../src/config/documents/read-documents.ts";
import { judgeMesh, type LoadedMesh } from "../src/config/mesh/load-mesh.ts";
import { objectKey } from "../src/config/object.ts";
import { readObject } from "../src/config/read-object.ts";
import { NodeSchema } from "../src/gen/envoy/config/core/v3/base_pb.js";
import { readNode } from "../src/generate/proxy-view.ts";
import { createWorld, type World } from "../src/generate/world.ts";
import type { ProxyView } from "../src/model/proxy.ts";
import { generateSettings } from "../src/serve/generate-settings.ts";
import { aheadSteps } from "../src/serve/prepare-ahead.ts";
import type { ResourceSet } from "../src/wire/encoded.ts";
import { CLUSTER_TYPE, ENDPOINT_TYPE, LISTENER_TYPE, ROUTE_TYPE, VIRTUAL_HOST_TYPE } from "../src/wire/type-urls.ts";
import { createNameSets } from "../src/xds/name-sets.ts";
import type { ResourceProvider, Wanted } from "../src/xds/provider.ts";
import { nodeOf } from "./client.ts";
import { referencesOf } from "./discovery-wire.ts";
import { type SceneProxy, type SceneShape, sceneFiles } from "./scene.ts";

/** A scene in memory: the real pipeline from text to encoded resources, without files and streams. */
export interface SceneWorld {
  readonly world: World;
  /** Reads a file's text and puts its objects in place of those with the same names; gives the number of objects. */
  put(text: string): number;
  /** What a control plane does while nobody is connected. */
  prepare(): void;
  /** Everything a proxy needs, type by type, asked for as Envoy asks. Calls back after each type. */
  ask(proxy: SceneProxy, answered?: (typeUrl: string, set: ResourceSet) => void): void;
}

/** Builds the world of a scene. With `load: false` it is empty. */
export function sceneWorld(shape: SceneShape, { load = true }: { readonly load?: boolean } = {}): SceneWorld {
  const mesh = defaultMesh();
  const world = createWorld(generateSettings(mesh));
  world.inputs.mesh.set("mesh", mesh.mesh);
  world.inputs.networks.set("networks", mesh.networks);
  const names = createNameSets();
  const put = (text: string): number => putObjects(world, text);
  const provider = (typeUrl: string): ResourceProvider => {
    const found = world.providers.find((one) => one.typeUrl === typeUrl);
    if (found === undefined) throw new Error(`nobody provides ${typeUrl}`);
    return found;
  };
  const ask: SceneWorld["ask"] = (proxy, answered = () => {}) => {
    const offered = (typeUrl: string, wanted: Iterable<string> | undefined): ResourceSet => {
      const want: Wanted = { wildcard: wanted === undefined || typeUrl === VIRTUAL_HOST_TYPE, names: names.of([...(wanted ?? [])]) };
      const view = viewOf(world, proxy);
      for (const _ of provider(typeUrl).prepare(view, want));
      const set = provider(typeUrl).offered(view, want);
      if (set.failed.length > 0) throw new Error(`${typeUrl}: ${JSON.stringify(set.failed.slice(0, 3))}`);
      answered(typeUrl, set);
      return set;
    };
    offered(ENDPOINT_TYPE, referred(offered(CLUSTER_TYPE, undefined), CLUSTER_TYPE));
    const tables = referred(offered(LISTENER_TYPE, undefined), LISTENER_TYPE);
    offered(ROUTE_TYPE, tables);
    if (proxy.vhds) offered(VIRTUAL_HOST_TYPE, tables);
  };
  if (load) for (const [file, text] of sceneFiles(shape)) if (file.startsWith("conf/")) put(text);
  const prepare = (): void => {
    for (const _ of aheadSteps(world, names, mesh.mesh.rootNamespace));
  };
  return { world, put, prepare, ask };
}

function defaultMesh(): LoadedMesh {
  const load = judgeMesh({ layers: [], networks: undefined, faults: [], paths: [], hash: "" }, { baseDir: "/", env: {} });
  if (!load.ok) throw new Error(`the default mesh is not valid: ${JSON.stringify(load.problems)}`);
  return load.config;
}

function putObjects({ engine, inputs }: World, text: string): number {
  let count = 0;
  engine.batch(() => {
    for (const raw of readDocuments(text, { source: "scene", file: "scene.yaml", scope: "scene.yaml" })) {
      const { object, problems } = readObject(raw);
      if (object === undefined) throw new Error(`a scene has an invalid object: ${JSON.stringify(problems[0])}`);
      inputs.objects.set(objectKey(object), object);
      count += 1;
    }
  });
  return count;
}

function viewOf(world: World, proxy: SceneProxy): ProxyView {
  const facts = readNode(create(NodeSchema, nodeOf(proxy)));
  if ("refused" in facts) throw new Error(facts.refused);
  return world.view(facts);
}

function referred(set: ResourceSet, typeUrl: string): readonly string[] {
  return [...set.resources.values()].flatMap(({ body }) =>
    referencesOf(typeUrl, Buffer.from(body.buffer, body.byteOffset, body.byteLength)),
  );
}
