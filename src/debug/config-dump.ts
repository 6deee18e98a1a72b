import type { Registry } from "@bufbuild/protobuf";
import type { Encoded } from "../wire/encoded.ts";
import {
  CLUSTER_TYPE,
  ENDPOINT_TYPE,
  EXTENSION_CONFIG_TYPE,
  LISTENER_TYPE,
  ROUTE_TYPE,
  SECRET_TYPE,
  VIRTUAL_HOST_TYPE,
} from "../wire/type-urls.ts";
import type {
  ClientStatus,
  ConfigDump,
  ConfigDumpPart,
  DumpedListener,
  DumpedResource,
  DumpedRouteTable,
  Json,
  ObjectOrigin,
} from "./api-types.ts";
import type { ProxyDump, Rejections } from "./proxy-dump.ts";
import { resourceJson } from "./resource-json.ts";

/** What a dump is made from besides what the proxy has. */
export interface DumpOptions {
  readonly registry: Registry;
  /** Objects that a resource was made from; undefined leaves them out. */
  readonly why: ((typeUrl: string, name: string) => readonly ObjectOrigin[]) | undefined;
  /** Awaited between resources when something comes back, so that a large dump does not hold up others. */
  readonly pause: () => Promise<void> | undefined;
}

/**
 * The configuration of a connected proxy in the shape of Envoy's own `/config_dump`, as Istio's debug page has it. Active is what the proxy
 * acknowledged, warming what it was offered beyond that. There is no bootstrap part: the control plane has not seen it.
 */
export async function configDump(proxy: ProxyDump, options: DumpOptions): Promise<ConfigDump> {
  const configs: ConfigDumpPart[] = [];
  const entriesOfType = async (typeUrl: string): Promise<readonly Entry[]> => {
    const type = proxy.types.find((candidate) => candidate.typeUrl === typeUrl);
    return type === undefined ? [] : entriesOf(type, proxy.rejected.get(typeUrl) ?? new Map(), options);
  };
  for (const { typeUrl, partOf } of PARTS) {
    const hosts = typeUrl === ROUTE_TYPE ? await entriesOfType(VIRTUAL_HOST_TYPE) : [];
    configs.push(partOf(await entriesOfType(typeUrl), hosts));
  }
  return { configs };
}

/** One resource: as held, as offered where that is another version. */
interface Entry {
  readonly name: string;
  readonly held: Dumped | undefined;
  readonly offered: Dumped | undefined;
  readonly status: ClientStatus;
  readonly error: { readonly details: string; readonly versionInfo: string } | undefined;
  readonly why: readonly ObjectOrigin[] | undefined;
}

interface Dumped {
  readonly version: string;
  readonly json: Json;
}

async function entriesOf(type: ProxyDump["types"][number], rejections: Rejections, options: DumpOptions): Promise<Entry[]> {
  const held = new Map(type.held.map((resource) => [resource.name, resource]));
  const entries: Entry[] = [];
  for (const name of [...new Set([...held.keys(), ...type.offered.resources.keys()])].sort()) {
    const now = held.get(name);
    const next = type.offered.resources.get(name);
    const same = now !== undefined && (next === undefined || next.version === now.version);
    const rejection = rejections.get(name);
    entries.push({
      name,
      held: now && (await dumped(now, options)),
      offered: same || next === undefined ? undefined : await dumped(next, options),
      status: rejection !== undefined ? "NACKED" : same ? "ACKED" : "REQUESTED",
      error: rejection && { details: rejection.error, versionInfo: rejection.version },
      why: options.why?.(type.typeUrl, name),
    });
    const rest = options.pause();
    if (rest !== undefined) await rest;
  }
  return entries;
}

async function dumped(resource: Encoded, { registry, pause }: DumpOptions): Promise<Dumped> {
  const { json, hosts } = resourceJson(resource, registry);
  if (hosts === undefined) return { version: resource.version, json };
  const virtualHosts: Json[] = [];
  for (const host of hosts) {
    virtualHosts.push(host);
    await pause();
  }
  return { version: resource.version, json: { ...json, virtualHosts } };
}

interface Part {
  readonly typeUrl: string;
  /** `hosts` are virtual hosts that are resources of their own. */
  readonly partOf: (entries: readonly Entry[], hosts: readonly Entry[]) => ConfigDumpPart;
}

/** The parts in Envoy's order. */
const PARTS: readonly Part[] = [
  {
    typeUrl: CLUSTER_TYPE,
    partOf: (entries) => ({
      "@type": "type.googleapis.com/envoy.admin.v3.ClustersConfigDump",
      ...listed(
        "dynamicActiveClusters",
        entries.flatMap((entry) => resource(entry, entry.held, "cluster")),
      ),
      ...listed(
        "dynamicWarmingClusters",
        entries.flatMap((entry) => resource(entry, entry.offered, "cluster")),
      ),
    }),
  },
  {
    typeUrl: LISTENER_TYPE,
    partOf: (entries) => ({
      "@type": "type.googleapis.com/envoy.admin.v3.ListenersConfigDump",
      ...listed("dynamicListeners", entries.map(listener)),
    }),
  },
  {
    typeUrl: ROUTE_TYPE,
    partOf: (entries, hosts) => ({
      "@type": "type.googleapis.com/envoy.admin.v3.RoutesConfigDump",
      ...listed(
        "dynamicRouteConfigs",
        entries.flatMap((entry) =>
          resource(entry, entry.held ?? entry.offered, "routeConfig").map((table) => withHosts(entry, table, hosts)),
        ),
      ),
    }),
  },
  {
    typeUrl: ENDPOINT_TYPE,
    partOf: (entries) => ({
      "@type": "type.googleapis.com/envoy.admin.v3.EndpointsConfigDump",
      ...listed(
        "dynamicEndpointConfigs",
        entries.flatMap((entry) => resource(entry, entry.held ?? entry.offered, "endpointConfig")),
      ),
    }),
  },
  {
    typeUrl: SECRET_TYPE,
    partOf: (entries) => ({
      "@type": "type.googleapis.com/envoy.admin.v3.SecretsConfigDump",
      ...listed(
        "dynamicActiveSecrets",
        entries.flatMap((entry) => resource(entry, entry.held, "secret").map((one) => ({ name: entry.name, ...one }))),
      ),
      ...listed(
        "dynamicWarmingSecrets",
        entries.flatMap((entry) => resource(entry, entry.offered, "secret").map((one) => ({ name: entry.name, ...one }))),
      ),
    }),
  },
  {
    typeUrl: EXTENSION_CONFIG_TYPE,
    partOf: (entries) => ({
      "@type": "type.googleapis.com/envoy.admin.v3.EcdsConfigDump",
      ...listed(
        "ecdsFilters",
        entries.flatMap((entry) => resource(entry, entry.held ?? entry.offered, "ecdsFilter")),
      ),
    }),
  },
];

/** Empty lists are left out, as in Envoy's dumps. */
const listed = <K extends string, T>(field: K, list: readonly T[]): { [F in K]?: readonly T[] } =>
  (list.length === 0 ? {} : { [field]: list }) as { [F in K]?: readonly T[] };

function resource<K extends string>(entry: Entry, content: Dumped | undefined, field: K): (DumpedResource & { [F in K]: Json })[] {
  if (content === undefined) return [];
  const dumpedResource = {
    versionInfo: content.version,
    [field]: content.json,
    clientStatus: entry.status,
    ...(entry.error !== undefined && { errorState: entry.error }),
    ...(entry.why !== undefined && { why: entry.why }),
  };
  return [dumpedResource as DumpedResource & { [F in K]: Json }];
}

/** A table with those of the hosts that belong to it: their names begin with its own. */
function withHosts({ name }: Entry, table: DumpedRouteTable, hosts: readonly Entry[]): DumpedRouteTable {
  const own = hosts.filter((host) => host.name.startsWith(`${name}/`));
  if (own.length === 0 || !isRecord(table.routeConfig)) return table;
  const { virtualHosts = [], ...rest } = table.routeConfig;
  const discovered = own.flatMap((host) => resource(host, host.held ?? host.offered, "host").map((one) => ({ name: host.name, ...one })));
  return {
    ...table,
    routeConfig: { ...rest, virtualHosts: [...(Array.isArray(virtualHosts) ? virtualHosts : []), ...discovered.map(({ host }) => host)] },
    discoveredHosts: discovered.map(({ host: _, ...entry }) => entry),
  };
}

const isRecord = (json: Json): json is { readonly [key: string]: Json } =>
  typeof json === "object" && json !== null && !Array.isArray(json);

function listener({ name, held, offered, status, error, why }: Entry): DumpedListener {
  return {
    name,
    ...(held !== undefined && { activeState: { versionInfo: held.version, listener: held.json } }),
    ...(offered !== undefined && { warmingState: { versionInfo: offered.version, listener: offered.json } }),
    clientStatus: status,
    ...(error !== undefined && { errorState: error }),
    ...(why !== undefined && { why }),
  };
}
