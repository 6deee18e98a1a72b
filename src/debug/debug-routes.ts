import { createSlice } from "../base/slice.ts";
import type { Encoded } from "../wire/encoded.ts";
import { encodedJson, messageRegistry } from "../wire/json.ts";
import { NAME_TABLE_TYPE } from "../wire/type-urls.ts";
import { NO_NAMES } from "../xds/name-sets.ts";
import type { StreamDump, StreamState } from "../xds/state.ts";
import type { DebugPage, ObjectOrigin } from "./api-types.ts";
import { configDump } from "./config-dump.ts";
import { configObjects } from "./config-objects.ts";
import { connectionDetails, connections } from "./connections.ts";
import { type DebugDeps, depsWithin } from "./debug-deps.ts";
import type { HttpAnswer, HttpRoute } from "./http-route.ts";
import { meshState } from "./mesh-page.ts";
import { originFinder, placed, problemRecord } from "./object-origin.ts";
import { registryEndpoints, registryServices } from "./registry-dump.ts";
import { reportedProxies } from "./reported-proxies.ts";
import { sharingClasses } from "./sharing-classes.ts";
import { proxyIdOf, syncStatus } from "./sync-status.ts";

type Page = Pick<HttpRoute, "path" | "about" | "answer">;

/** The debug pages over live state. None of them is open. Names and shapes are Istio's where Istio has the page. */
export function debugRoutes(deps: DebugDeps): readonly HttpRoute[] {
  return pagesOf(deps).map((page) => ({ ...page, open: false, ...(DIVISIBLE.has(page.path) && { within: withinPage(deps, page) }) }));
}

const pagesOf = (deps: DebugDeps): readonly Page[] => [...proxyPages(deps), ...configPages(deps), ...insidePages(deps)];

/** Pages that can be shown as far as they are about one namespace. */
const DIVISIBLE: ReadonlySet<string> = new Set(
  ["adsz", "config_dump", "configz", "connections", "ndsz", "syncz"].map((name) => `/debug/${name}`),
);

const withinPage =
  (deps: DebugDeps, { path, answer }: Page) =>
  (namespace: string): Page["answer"] =>
    pagesOf(depsWithin(deps, namespace)).find((page) => page.path === path)?.answer ?? answer;

/** The page that names all others, whoever serves them. */
export function listRoute(routes: readonly HttpRoute[]): HttpRoute {
  const list = routes
    .map(({ path, about, method }): DebugPage => ({ path, about, ...(method !== undefined && { method }) }))
    .sort((a, b) => (a.path < b.path ? -1 : 1));
  return { path: "/debug/list", open: false, about: "this list", answer: () => ok(list) };
}

const ok = (body: unknown): HttpAnswer => ({ status: 200, body });

const proxyPages = (deps: DebugDeps): readonly Page[] => [
  {
    path: "/debug/syncz",
    about: "connected proxies and what they acknowledged, by type",
    answer: () => ok(syncStatus(deps.xds.state(), deps.instance)),
  },
  { path: "/debug/connections", about: "connected proxies", answer: () => ok(connections(deps.xds.state())) },
  {
    path: "/debug/adsz",
    about: "connected proxies, what they say of themselves and what they watch",
    answer: () => ok(connectionDetails(deps.xds.state(), deps.xds.dump)),
  },
  {
    path: "/debug/config_dump",
    about:
      "?proxyID=name.namespace: the configuration of a proxy as Envoy's own dump shows it; &why adds the objects each resource was made from",
    answer: (query) => dumpPage(deps, query),
  },
  {
    path: "/debug/ndsz",
    about: "?proxyID=name.namespace: the names that the agent beside a proxy resolves, and their addresses",
    answer: (query) => namesPage(deps, query.get("proxyID") ?? ""),
  },
];

const configPages = (deps: DebugDeps): readonly Page[] => [
  {
    path: "/debug/configz",
    about: "all configuration objects in force and where they are written; ?type=VirtualService and ?namespace=ns narrow it",
    answer: async (query) => {
      const filter = { type: query.get("type") ?? undefined, namespace: query.get("namespace") ?? undefined };
      return ok(configObjects(deps.store.list(), filter, await messageRegistry()));
    },
  },
  {
    path: "/debug/problems",
    about: "everything wrong with the configuration",
    answer: () => {
      const beside = deps.world.problems.all().map((problem) => placed(problem, deps.store));
      return ok([...deps.mesh.problems, ...deps.store.problems(), ...beside].map(problemRecord));
    },
  },
  {
    path: "/debug/envoyfilterz",
    about:
      "what each patch of each EnvoyFilter does at connected proxies, and why those without effect have none; ?proxyID=name.namespace looks at one",
    answer: (query) => patchPage(deps, query.get("proxyID") ?? ""),
  },
  {
    path: "/debug/mesh",
    about: "mesh configuration and settings in force, and what waits for a restart",
    answer: async () => ok(meshState(deps.mesh, await messageRegistry())),
  },
  {
    path: "/debug/registryz",
    about: "all services",
    answer: () => ok(registryServices(deps.world.context.registry, originFinder(deps.store))),
  },
  {
    path: "/debug/endpointz",
    about: "endpoints of every service port; ?host=name narrows it",
    answer: (query) => ok(registryEndpoints(deps.world.context.registry, originFinder(deps.store), query.get("host") ?? undefined)),
  },
];

const insidePages = (deps: DebugDeps): readonly Page[] => [
  {
    path: "/debug/classes",
    about: "how resources are shared between proxies, and which attributes split them",
    answer: () => ok(sharingClasses(deps.xds.state().flatMap(({ id }) => deps.xds.dump(id) ?? []))),
  },
  {
    path: "/debug/cachez",
    about: "counters of the engine: results held, runs, hits, cut-offs",
    answer: () => ok(deps.world.engine.stats()),
  },
];

function patchPage({ xds, world }: DebugDeps, wanted: string): HttpAnswer {
  const streams = wanted === "" ? xds.state() : [findStream(xds.state(), wanted)].filter((stream) => stream !== undefined);
  if (wanted !== "" && streams.length === 0) return notConnected(wanted);
  return ok(world.patchReport(reportedProxies(xds, streams)));
}

const notConnected = (wanted: string): HttpAnswer => ({
  status: 404,
  body: { error: `no proxy named ${wanted} is connected; /debug/syncz names those that are` },
});

async function dumpPage(deps: DebugDeps, query: URLSearchParams): Promise<HttpAnswer> {
  const wanted = query.get("proxyID") ?? "";
  if (wanted === "") return { status: 400, body: { error: "say which proxy: ?proxyID=name.namespace" } };
  const state = findStream(deps.xds.state(), wanted);
  const dump = state === undefined ? undefined : deps.xds.dump(state.id);
  if (dump === undefined) return notConnected(wanted);
  const options = {
    registry: await messageRegistry(),
    why: query.has("why") ? whyOf(deps, dump) : undefined,
    pause: createSlice(deps.clock),
  };
  return ok(await configDump(dump, state, options));
}

/** Every workload has a table, whether or not its agent has asked for it. */
async function namesPage({ xds, world }: DebugDeps, wanted: string): Promise<HttpAnswer> {
  if (wanted === "") return { status: 400, body: { error: "say which proxy: ?proxyID=name.namespace" } };
  const view = findStream(xds.state(), wanted)?.view;
  if (view === undefined) return notConnected(wanted);
  const provider = world.providers.find(({ typeUrl }) => typeUrl === NAME_TABLE_TYPE);
  const tables = provider?.offered(view, { wildcard: true, names: NO_NAMES }).resources ?? new Map<string, Encoded>();
  const registry = await messageRegistry();
  return ok({ configs: [...tables.values()].map((table) => encodedJson(registry, table)) });
}

/** By node id, `name.namespace`, or a name that only one proxy has; of several connections of one proxy the newest. */
function findStream(streams: readonly StreamState[], wanted: string): StreamState | undefined {
  const newestFirst = [...streams].filter(({ node }) => node !== "").sort((a, b) => b.connectedAt - a.connectedAt);
  const exact = newestFirst.find(({ node }) => node === wanted || proxyIdOf(node) === wanted);
  if (exact !== undefined) return exact;
  const byName = newestFirst.filter(({ view }) => view?.name === wanted);
  return new Set(byName.map(({ node }) => node)).size === 1 ? byName[0] : undefined;
}

function whyOf(deps: DebugDeps, { view }: StreamDump): (typeUrl: string, name: string) => readonly ObjectOrigin[] {
  const originOf = originFinder(deps.store);
  const providers = new Map(deps.world.providers.map((provider) => [provider.typeUrl, provider]));
  return (typeUrl, name) => {
    try {
      return (providers.get(typeUrl)?.provenance(view, name) ?? []).map(originOf);
    } catch {
      return []; // It cannot be made at present; what is served is a last good version, and its reads are gone.
    }
  };
}
