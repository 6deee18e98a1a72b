import assert from "node:assert/strict";
import { jsonParts } from "../../src/base/json-parts.ts";
import { silentLog } from "../../src/base/log.ts";
import { readDocuments } from "../../src/config/documents/read-documents.ts";
import { judgeMesh } from "../../src/config/mesh/load-mesh.ts";
import { readObject } from "../../src/config/read-object.ts";
import { createStore } from "../../src/config/store/store.ts";
import type { DebugDeps } from "../../src/debug/debug-deps.ts";
import { debugRoutes } from "../../src/debug/debug-routes.ts";
import type { HttpAnswer } from "../../src/debug/http-route.ts";
import { dumpOf, streamOf, testView, typeStateOf } from "../../src/debug/stream-fixture.ts";
import { createWorld } from "../../src/generate/world.ts";
import type { ProxyView } from "../../src/model/proxy.ts";
import { CLUSTER_TYPE } from "../../src/wire/type-urls.ts";
import { manualClock } from "./manual-clock.ts";
import { PLAIN_SETTINGS } from "./mesh-from.ts";

/** The debug pages of a control plane with this configuration in namespace `shop`, where a sidecar is connected that has its clusters. */
export async function debugPagesOf(
  text: string,
  { view = testView(), deps = {} }: { readonly view?: ProxyView; readonly deps?: Partial<DebugDeps> } = {},
) {
  const clock = manualClock();
  const world = createWorld({ ...PLAIN_SETTINGS, autoAddressRanges: [] });
  const load = judgeMesh({ layers: [], networks: undefined, faults: [], paths: [], hash: "" }, { baseDir: "/", env: {} });
  if (!load.ok) throw new Error("the defaults are good");
  world.inputs.mesh.set("mesh", load.config.mesh);
  const store = createStore({ engine: world.engine, inputs: world.inputs, sources: ["files"], readObject, log: silentLog, clock });
  const say = (content: string) =>
    store.apply("files", {
      type: "reset",
      objects: [...readDocuments(content, { source: "files", file: "conf/shop/a.yaml", scope: "shop/a.yaml", defaultNamespace: "shop" })],
    });
  await say(text);
  const clusters = world.providers
    .find(({ typeUrl }) => typeUrl === CLUSTER_TYPE)
    ?.offered(view, { wildcard: true, names: { id: 0, names: new Set() } });
  const xds: DebugDeps["xds"] = {
    state: () => [streamOf([typeStateOf({})], { view, node: view.id })],
    dump: (id) => (id === "1" && clusters !== undefined ? dumpOf(view, [...clusters.resources.values()], clusters) : undefined),
  };
  const mesh = {
    current: load.config,
    problems: [],
    warnings: [],
    waiting: [{ field: "listen.grpcAddr", needsRestart: true, sentence: "later" }],
  };
  const routes = debugRoutes({ store, world, xds, lastPush: () => undefined, mesh, clock, instance: "istiod-0", ...deps });
  const ask = async (path: string, namespace?: string): Promise<HttpAnswer> => {
    const url = new URL(path, "http://host");
    const route = routes.find((candidate) => candidate.path === url.pathname);
    assert.ok(route, path);
    const give = namespace === undefined ? route.answer : route.within?.(namespace);
    if (give === undefined) return { status: 403, body: undefined };
    const answer = await give(url.searchParams);
    return { ...answer, body: JSON.parse([...jsonParts(answer.body)].join("")) };
  };
  const page = async <T>(path: string, namespace?: string): Promise<T> => (await ask(path, namespace)).body as T;
  return { routes, world, say, page, ask };
}
