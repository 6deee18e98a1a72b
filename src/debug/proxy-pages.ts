import { createSlice } from "../base/slice.ts";
import type { Encoded } from "../wire/encoded.ts";
import { messageRegistry } from "../wire/json.ts";
import { NAME_TABLE_TYPE } from "../wire/type-urls.ts";
import { NO_NAMES } from "../xds/name-sets.ts";
import type { ObjectOrigin } from "./api-types.ts";
import { configDump } from "./config-dump.ts";
import { connectionDetails, connections } from "./connections.ts";
import type { DebugDeps } from "./debug-deps.ts";
import type { HttpAnswer } from "./http-route.ts";
import { originFinder } from "./object-origin.ts";
import { askedStream, askedStreams, notConnected, ok, type Page } from "./page.ts";
import { type DumpedStream, type ProxyDump, proxyDump } from "./proxy-dump.ts";
import { servedPorts } from "./served-ports.ts";
import { shownObjects } from "./shown-objects.ts";
import { sidecarScope } from "./sidecar-scope.ts";
import { syncStatus } from "./sync-status.ts";
import { resourcesJson, typedDump } from "./typed-dump.ts";

const ONE = "?proxyID=name.namespace:";

/** Pages about connected proxies. */
export const proxyPages = (deps: DebugDeps): readonly Page[] => [...connectionPages(deps), ...ownedPages(deps)];

const connectionPages = (deps: DebugDeps): readonly Page[] => [
  {
    path: "/debug/syncz",
    about: "connected proxies and what they acknowledged, by type; ?namespace=ns narrows it",
    divisible: true,
    answer: (query) => {
      const namespace = query.get("namespace");
      const streams = deps.xds.state().filter(({ view }) => namespace === null || view?.namespace === namespace);
      return ok(syncStatus(streams, deps.instance));
    },
  },
  { path: "/debug/connections", about: "connected proxies", divisible: true, answer: () => ok(connections(deps.xds.state())) },
  {
    path: "/debug/adsz",
    about: "connected proxies, what they say of themselves and what they watch; ?proxyID=name.namespace looks at one",
    divisible: true,
    answer: (query) => {
      if (!query.has("proxyID")) return ok(connectionDetails(deps.xds.state(), deps.xds.dump));
      const asked = askedStreams(deps.xds.state(), query);
      return "streams" in asked ? ok(connectionDetails(asked.streams, deps.xds.dump)) : asked;
    },
  },
  {
    path: "/debug/instancesz",
    about: "the service ports that each connected proxy serves",
    divisible: true,
    answer: () => ok(servedPorts(deps)),
  },
];

/** About what one proxy has. */
const ownedPages = (deps: DebugDeps): readonly Page[] => [
  {
    path: "/debug/config_dump",
    about: `${ONE} the configuration of a proxy as Envoy's own dump shows it; &why adds the objects each resource was made from, &types=cds,eds gives those resources alone`,
    divisible: true,
    answer: (query) => dumpPage(deps, query),
  },
  ...Object.entries(TYPED).map(
    ([type, what]): Page => ({
      path: `/debug/${type}z`,
      about: `${ONE} its ${what}`,
      divisible: true,
      answer: (query) => typedPage(deps, query, type),
    }),
  ),
  {
    path: "/debug/ndsz",
    about: `${ONE} the names that the agent beside a proxy resolves, and their addresses`,
    divisible: true,
    answer: (query) => namesPage(deps, query),
  },
  {
    path: "/debug/sidecarz",
    about: `${ONE} the services and rules that it may see, and the Sidecar that says so`,
    divisible: true,
    answer: (query) => {
      const asked = askedStream(deps.xds.state(), query);
      if (!("stream" in asked)) return asked;
      const { view } = asked.stream;
      return view === undefined ? notConnected(query.get("proxyID") ?? "") : ok(sidecarScope(deps, view));
    },
  },
];

const TYPED = { cds: "clusters", lds: "listeners", eds: "endpoints, by cluster", ecds: "filters that are sent by themselves" } as const;

async function dumpPage(deps: DebugDeps, query: URLSearchParams): Promise<HttpAnswer> {
  const types = query.get("types");
  if (types !== null) return typedPage(deps, query, types);
  const asked = askedDump(deps, query);
  if (!("dump" in asked)) return asked;
  const options = {
    registry: await messageRegistry(),
    why: query.has("why") ? whyOf(deps, asked.dump) : undefined,
    pause: createSlice(deps.clock),
  };
  return ok(await configDump(asked.dump, options));
}

async function typedPage(deps: DebugDeps, query: URLSearchParams, types: string): Promise<HttpAnswer> {
  const asked = askedDump(deps, query);
  return "dump" in asked ? ok(typedDump(asked.dump, types, await messageRegistry())) : asked;
}

/** What the proxy that is asked about has, whichever of its streams it came on. */
function askedDump({ xds }: DebugDeps, query: URLSearchParams): { readonly dump: ProxyDump } | HttpAnswer {
  const asked = askedStreams(xds.state(), query);
  if (!("streams" in asked)) return asked;
  const [newest, ...others] = asked.streams.flatMap(({ id, types }): DumpedStream[] => {
    const dump = xds.dump(id);
    return dump === undefined ? [] : [{ dump, types }];
  });
  return newest === undefined ? notConnected(query.get("proxyID") ?? "") : { dump: proxyDump([newest, ...others]) };
}

/** Every workload has a table, whether or not its agent has asked for it. */
async function namesPage({ xds, world }: DebugDeps, query: URLSearchParams): Promise<HttpAnswer> {
  const asked = askedStream(xds.state(), query);
  if (!("stream" in asked)) return asked;
  const { view } = asked.stream;
  if (view === undefined) return notConnected(query.get("proxyID") ?? "");
  const provider = world.providers.find(({ typeUrl }) => typeUrl === NAME_TABLE_TYPE);
  const tables = provider?.offered(view, { wildcard: true, names: NO_NAMES }).resources ?? new Map<string, Encoded>();
  return ok(resourcesJson(tables.values(), await messageRegistry()));
}

function whyOf(deps: DebugDeps, { view }: ProxyDump): (typeUrl: string, name: string) => readonly ObjectOrigin[] {
  const originOf = originFinder(deps.store);
  const isShown = deps.viewer === undefined ? () => true : shownObjects(deps, deps.viewer);
  const providers = new Map(deps.world.providers.map((provider) => [provider.typeUrl, provider]));
  return (typeUrl, name) => {
    try {
      return (providers.get(typeUrl)?.provenance(view, name) ?? []).filter(isShown).map(originOf);
    } catch {
      return []; // It cannot be made at present; what is served is a last good version, and its reads are gone.
    }
  };
}
