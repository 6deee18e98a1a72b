import { create, type JsonObject, type JsonValue, type Registry } from "@bufbuild/protobuf";
import { load } from "js-yaml";
import { systemClock } from "../../src/base/clock.ts";
import { finishSliced } from "../../src/base/slice.ts";
import { readDocuments } from "../../src/config/documents/read-documents.ts";
import { judgeMesh } from "../../src/config/mesh/load-mesh.ts";
import { objectKey } from "../../src/config/object.ts";
import type { Problem } from "../../src/config/problem.ts";
import { readObject } from "../../src/config/read-object.ts";
import { type Node, NodeSchema } from "../../src/gen/envoy/config/core/v3/base_pb.js";
import type { GenerateSettings } from "../../src/generate/context.ts";
import type { PatchReport, ReportedProxy } from "../../src/generate/patches/report.ts";
import { readNode } from "../../src/generate/proxy-view.ts";
import { createWorld, type World } from "../../src/generate/world.ts";
import type { ProxyView } from "../../src/model/proxy.ts";
import { SESSION_DEFAULTS } from "../../src/model/session.ts";
import type { ResourceSet } from "../../src/wire/encoded.ts";
import { encodedJson, messageRegistry } from "../../src/wire/json.ts";
import {
  CLUSTER_TYPE,
  ENDPOINT_TYPE,
  EXTENSION_CONFIG_TYPE,
  LISTENER_TYPE,
  NAME_TABLE_TYPE,
  ROUTE_TYPE,
  shortTypeName,
  VIRTUAL_HOST_TYPE,
} from "../../src/wire/type-urls.ts";
import { createNameSets, type NameSets } from "../../src/xds/name-sets.ts";
import type { ResourceProvider } from "../../src/xds/provider.ts";

/** A proxy of a test, by name. */
export interface TestProxy {
  readonly name: string;
  readonly view: ProxyView;
}

/** The real pipeline in memory: parse, validate, derive, generate. */
export interface TestMesh {
  readonly world: World;
  /** All that asks the world must take its sets of names from here: equal ids mean equal sets to it. */
  readonly names: NameSets;
  /** Asked anew each time: a change may give a proxy other labels or another Sidecar. */
  readonly proxies: readonly TestProxy[];
  readonly problems: readonly Problem[];
  /** Puts documents in force, of this cluster or another, and takes objects (by key) out, as one change. */
  change(change: { readonly put?: string; readonly cluster?: string; readonly remove?: readonly string[] }): void;
  /** What a proxy is offered, type by type, in the order in which it would ask: names found in one type are asked of the next. */
  resources(proxy: TestProxy): Promise<ReadonlyMap<string, ResourceSet>>;
  json(proxy: TestProxy): Promise<Readonly<Record<string, JsonObject>>>;
  /** What the patches of EnvoyFilters do at all proxies. */
  patchReport(): Promise<readonly PatchReport[]>;
}

/** A proxy as a header names it; further fields are node metadata. `ASKS` are the listeners that a workload without a proxy asks for. */
type ProxyFields = { readonly name: string; readonly [field: string]: JsonValue | undefined };

/** The document that may stand first in a test's input. Fields that are not of the mesh belong to the test that reads them. */
export interface MeshHeader {
  readonly proxies?: readonly ProxyFields[];
  readonly mesh?: JsonObject;
  readonly settings?: Partial<GenerateSettings>;
}

/** The parts of a mesh, for tests that have them apart. */
export interface MeshParts {
  /** Texts of one or many documents. */
  readonly documents: readonly string[];
  readonly mesh?: JsonObject;
  readonly networks?: JsonObject;
  readonly settings?: Partial<GenerateSettings>;
  readonly nodes: readonly { readonly name: string; readonly node: Node }[];
  /** Whether queries are recomputed on every hit, so that an impure one fails the test. So it is, where a test does not need the time for more meshes. */
  readonly recheck?: boolean;
}

/** Settings as a control plane without any has them. */
export const PLAIN_SETTINGS: GenerateSettings = {
  clusterDomain: "cluster.local",
  clusterId: "Kubernetes",
  sniffOutbound: true,
  sniffInbound: true,
  edsForHeadless: false,
  defaultRequestTimeoutMs: 0,
  http10: false,
  mongoFilter: true,
  redisFilter: false,
  sessions: SESSION_DEFAULTS,
  quicListeners: false,
  dualStack: false,
  tlsOnSidecarIngress: false,
  traceSampling: 1,
  severalAuthorizers: false,
  keyFetcher: "istiod",
  autoAddressRanges: ["240.240.0.0/16", "2001:2::/48"],
};

/**
 * Builds a mesh from documents. The first one may be a header with `proxies`, `mesh` and `settings`; the rest are configuration objects.
 * Queries are recomputed on every hit (`recheck`), so an impure one fails the test that uses it.
 */
export function meshFrom(text: string): TestMesh {
  const { header, documents } = splitHeader<MeshHeader>(text);
  const nodes = (header.proxies ?? [{ name: "client" }]).map((fields) => ({ name: fields.name, node: nodeOf(fields) }));
  return meshOf({ ...header, documents: [documents], nodes });
}

/** The same from parts. */
export function meshOf(parts: MeshParts): TestMesh {
  const world = createWorld({ ...PLAIN_SETTINGS, ...parts.settings }, { recheck: parts.recheck ?? true });
  const problems: Problem[] = [];
  const put = (text: string, scope: string, cluster?: string): void => {
    for (const raw of readDocuments(text, { source: "test", file: "input.yaml", scope })) {
      const { object: read, problems: found } = readObject(raw);
      problems.push(...found);
      const object = read === undefined || cluster === undefined ? read : { ...read, cluster, hash: `${read.hash}@${cluster}` };
      if (object !== undefined) world.inputs.objects.set(objectKey(object), object);
    }
  };
  world.engine.batch(() => {
    for (const [index, text] of parts.documents.entries()) put(text, `input-${index}.yaml`);
    putMesh(world, parts);
  });
  const names = createNameSets();
  const resources = async (proxy: TestProxy): Promise<ReadonlyMap<string, ResourceSet>> => {
    const registry = await messageRegistry();
    world.patches.use(registry);
    return walk(world, proxy.view, { names, registry });
  };
  const proxies = (): readonly TestProxy[] => parts.nodes.map(({ name, node }) => ({ name, view: viewOf(world, node) }));
  return {
    world,
    names,
    get proxies() {
      return proxies();
    },
    async patchReport() {
      const reported: ReportedProxy[] = [];
      for (const proxy of proxies()) {
        const offered = await resources(proxy);
        const types = [...offered].map(([typeUrl, set]) => {
          const named = typeUrl === VIRTUAL_HOST_TYPE ? offered.get(ROUTE_TYPE) : set;
          return { typeUrl, wanted: { wildcard: true, names: names.of([...(named?.resources.keys() ?? [])]) } };
        });
        reported.push({ view: proxy.view, types });
      }
      return finishSliced(world.patchReport(reported), systemClock);
    },
    problems,
    change({ put: text = "", cluster, remove = [] }) {
      world.engine.batch(() => {
        for (const key of remove) world.inputs.objects.delete(key);
        put(text, "change.yaml", cluster);
      });
    },
    resources,
    async json(proxy) {
      const registry = await messageRegistry();
      return Object.fromEntries(
        [...(await resources(proxy))].map(([type, set]) => [
          shortTypeName(type),
          Object.fromEntries([...set.resources.values()].map((one) => [one.name, encodedJson(registry, one)])),
        ]),
      );
    },
  };
}

/** Takes the header document off a test's input, where it has one. */
export function splitHeader<H extends object>(text: string): { readonly header: Partial<H>; readonly documents: string } {
  const end = text.indexOf("\n---\n");
  const first = end < 0 ? text : text.slice(0, end);
  if (/^(kind|apiVersion):/m.test(first)) return { header: {}, documents: text };
  return { header: (load(first) ?? {}) as Partial<H>, documents: end < 0 ? "" : text.slice(end + 5) };
}

function putMesh(world: World, { mesh = {}, networks }: MeshParts): void {
  const file = (path: string, content: JsonObject) => ({ path, content, lineOf: () => undefined });
  const snapshot = {
    layers: [file("mesh.yaml", mesh)],
    networks: networks === undefined ? undefined : file("networks.yaml", networks),
    faults: [],
    paths: [],
    hash: "",
  };
  const load = judgeMesh(snapshot, { baseDir: "/", env: {} });
  if (!load.ok) throw new Error(JSON.stringify(load.problems));
  world.inputs.mesh.set("mesh", load.config.mesh);
  world.inputs.networks.set("networks", load.config.networks);
}

function nodeOf(fields: ProxyFields): Node {
  const { name, type = "sidecar", namespace = "default", address = "10.9.9.9", labels = {}, ...others } = fields;
  const { domain = `${namespace}.svc.cluster.local`, ...metadata } = others;
  return create(NodeSchema, {
    id: `${type}~${address}~${name}.${namespace}~${domain}`,
    metadata: { NAMESPACE: namespace, LABELS: labels, ISTIO_VERSION: "1.32.0", ...(metadata as JsonObject) },
  });
}

function viewOf(world: World, node: Node): ProxyView {
  const facts = readNode(node);
  if ("refused" in facts) throw new Error(facts.refused);
  return world.view(facts);
}

interface Walker {
  readonly names: NameSets;
  readonly registry: Registry;
}

function providerOf(world: World, typeUrl: string): ResourceProvider {
  const found = world.providers.find((one) => one.typeUrl === typeUrl);
  if (found === undefined) throw new Error(`no provider of ${typeUrl}`);
  return found;
}

/** Asks as gRPC does: for the listeners it dials or opens, the tables those name, the clusters those lead to, their assignments. */
function walkByName(world: World, view: ProxyView, { names, registry }: Walker): ReadonlyMap<string, ResourceSet> {
  const ask = (typeUrl: string, wanted: readonly string[]): ResourceSet =>
    providerOf(world, typeUrl).offered(view, { wildcard: false, names: names.of(wanted) });
  const found = (set: ResourceSet, keys: readonly string[]): readonly string[] =>
    [...set.resources.values()].flatMap((one) => namesUnder(encodedJson(registry, one), keys));
  const listeners = ask(LISTENER_TYPE, (JSON.parse(view.metadata.raw) as { readonly ASKS?: readonly string[] }).ASKS ?? []);
  const routes = ask(ROUTE_TYPE, found(listeners, ["routeConfigName"]));
  const clusters = ask(
    CLUSTER_TYPE,
    found(routes, ["cluster", "name"]).filter((name) => name.startsWith("outbound|")),
  );
  return new Map([
    [LISTENER_TYPE, listeners],
    [ROUTE_TYPE, routes],
    [CLUSTER_TYPE, clusters],
    [ENDPOINT_TYPE, ask(ENDPOINT_TYPE, found(clusters, ["serviceName"]))],
  ]);
}

/** Asks as Envoy does: all clusters, their assignments, all listeners, the tables those name; and for the names its agent resolves. */
function walk(world: World, view: ProxyView, { names, registry }: Walker): ReadonlyMap<string, ResourceSet> {
  if (view.generator === "grpc") return walkByName(world, view, { names, registry });
  const provider = (typeUrl: string): ResourceProvider => providerOf(world, typeUrl);
  const all = { wildcard: true, names: names.of([]) };
  const clusters = provider(CLUSTER_TYPE).offered(view, all);
  const companion = provider(CLUSTER_TYPE).companion;
  const assignments = [...clusters.resources.values()].flatMap((cluster) => companion?.namesOf(cluster) ?? []);
  const listeners = provider(LISTENER_TYPE).offered(view, all);
  const inListeners = [...listeners.resources.values()].map((listener) => encodedJson(registry, listener));
  const tables = inListeners.flatMap(routeNames);
  const extensions = inListeners.flatMap(discoveredNames);
  return new Map([
    [CLUSTER_TYPE, clusters],
    [ENDPOINT_TYPE, provider(ENDPOINT_TYPE).offered(view, { wildcard: false, names: names.of(assignments) })],
    [LISTENER_TYPE, listeners],
    [ROUTE_TYPE, provider(ROUTE_TYPE).offered(view, { wildcard: false, names: names.of(tables) })],
    [VIRTUAL_HOST_TYPE, provider(VIRTUAL_HOST_TYPE).offered(view, { wildcard: true, names: names.of(tables) })],
    [EXTENSION_CONFIG_TYPE, provider(EXTENSION_CONFIG_TYPE).offered(view, { wildcard: false, names: names.of(extensions) })],
    [NAME_TABLE_TYPE, provider(NAME_TABLE_TYPE).offered(view, all)],
  ]);
}

/** Names of the filters whose configuration a listener (as JSON) leaves to discovery, at any depth. */
function discoveredNames(json: JsonValue): readonly string[] {
  if (Array.isArray(json)) return json.flatMap(discoveredNames);
  if (typeof json !== "object" || json === null) return [];
  const own = json.configDiscovery !== undefined && typeof json.name === "string" ? [json.name] : [];
  return [...own, ...Object.values(json).flatMap(discoveredNames)];
}

/** Names of the route tables that a listener (as JSON) refers to, at any depth. */
const routeNames = (json: JsonValue): readonly string[] => namesUnder(json, ["routeConfigName"]);

/** Texts that stand under one of some keys, at any depth. */
function namesUnder(json: JsonValue, keys: readonly string[]): readonly string[] {
  if (Array.isArray(json)) return json.flatMap((item) => namesUnder(item, keys));
  if (typeof json !== "object" || json === null) return [];
  return Object.entries(json).flatMap(([key, value]) =>
    keys.includes(key) && typeof value === "string" ? [value] : namesUnder(value, keys),
  );
}
