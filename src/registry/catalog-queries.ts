import { type Cidr, parseCidr } from "../base/address.ts";
import { parseServiceHost } from "../base/hostname.ts";
import { type ConfigObject, inCluster } from "../config/object.ts";
import type { Query } from "../engine/index.ts";
import { refOf, type Service, type ServiceRef, serviceKey } from "../model/service.ts";
import { type Applicant, allocateSlots, bucketOf, inBuckets, slotAddress } from "./auto-address.ts";
import { compareDeclarations, type Declaration, type DeclarationDefaults, mergeDeclarations, needsAddress } from "./declaration.ts";
import { declarationsIn, editionOf, editionsOf } from "./editions.ts";
import { cappedExport } from "./entry-visibility.ts";
import { declareKubernetesService } from "./kubernetes-service.ts";
import type { RegistryContext } from "./registry-context.ts";
import { declareServiceEntry } from "./service-entry.ts";
import { kindOfKey, storedService, storedServiceEntry } from "./stored-object.ts";

/** Queries that say which services exist and what they are; none of them reads an endpoint. */
export interface CatalogQueries {
  readonly namespaces: Query<"", readonly string[]>;
  readonly servicesIn: Query<string, readonly ServiceRef[]>;
  readonly servicesByHost: Query<string, readonly ServiceRef[]>;
  readonly service: Query<ServiceRef, Service | undefined>;
  /** What one Service or ServiceEntry declares, by object key. */
  readonly declaration: Query<string, Declaration | undefined>;
  /** What makes up a service, in order of precedence. */
  readonly declarations: (ref: ServiceRef) => readonly Declaration[];
  /** The service that all declarations of a host in a namespace make up, whoever sees them: workloads serve all of it. */
  readonly whole: (ref: ServiceRef) => ServiceRef;
}

/** A service, as the list of services and the allocation of addresses see it. */
interface CatalogEntry extends Omit<ServiceRef, "namespace"> {
  readonly needsAddress: boolean;
  readonly createdAt: number;
}

/** Defines the queries. Lists read names only, so a service that merely changes re-runs its own queries and nothing else. */
export function defineCatalog(context: RegistryContext): CatalogQueries {
  const { engine, inputs } = context;

  const declaration = engine.query<string, Declaration | undefined>({
    name: "registry.declaration",
    eager: true,
    compute: (key) => declare(context, key),
  });
  const inOrder = (keys: readonly string[]): readonly Declaration[] =>
    keys.flatMap((key) => declaration(key) ?? []).sort(compareDeclarations);

  const declared = engine.query<Pick<ServiceRef, "namespace" | "host">, readonly Declaration[]>({
    name: "registry.declarations",
    id: ({ namespace, host }) => `${namespace}/${host}`,
    compute: ({ namespace, host }) => inOrder(declarerKeys(context, host).filter((key) => key.split("/", 2)[1] === namespace)),
  });
  const catalog = engine.query<string, readonly CatalogEntry[]>({
    name: "registry.catalog",
    compute: (namespace) =>
      catalogOf(inOrder(["Service", "ServiceEntry"].flatMap((kind) => inputs.objects.keys("kindNamespace", `${kind}/${namespace}`)))),
  });
  const namespaces = engine.query<"", readonly string[]>({
    name: "registry.namespaces",
    compute: () => namespacesWithServices(inputs.objects.indexKeys("kindNamespace")),
  });
  const autoAddresses = defineAutoAddresses(context, { namespaces, catalog });

  const declarations = (ref: ServiceRef): readonly Declaration[] => declarationsIn(ref.edition, declared(ref));

  return {
    namespaces,
    declaration,
    declarations,
    whole: ({ namespace, host }) => {
      const all = declared({ namespace, host });
      const open = declarations({ namespace, host });
      return all.length === open.length ? { namespace, host } : { namespace, host, edition: editionOf(all) };
    },
    servicesIn: engine.query<string, readonly ServiceRef[]>({
      name: "registry.servicesIn",
      compute: (namespace) => catalog(namespace).map(({ host, edition }) => refOf({ namespace, host, edition })),
    }),
    servicesByHost: engine.query<string, readonly ServiceRef[]>({
      name: "registry.servicesByHost",
      compute: (host) => inPrecedence(host, inOrder(declarerKeys(context, host))),
    }),
    service: engine.query<ServiceRef, Service | undefined>({
      name: "registry.service",
      id: serviceKey,
      compute: (ref) => {
        const service = serviceOf(ref, declarations(ref), autoAddresses);
        if (service === undefined || ref.edition === undefined) return service;
        const exportTo = editionsOf(declared(ref)).find(({ edition }) => edition === ref.edition)?.exportTo ?? [];
        return { ...service, edition: ref.edition, exportTo };
      },
    }),
  };
}

function serviceOf(
  ref: ServiceRef,
  [first, ...others]: readonly Declaration[],
  autoAddresses: (key: string) => readonly string[],
): Service | undefined {
  if (first === undefined) return undefined;
  const given = needsAddress(ref.host, [first, ...others]) ? autoAddresses(serviceKey(ref)) : [];
  return { ...mergeDeclarations(ref.host, [first, ...others]), autoAddresses: given };
}

function declare(context: RegistryContext, key: string): Declaration | undefined {
  const { inputs, mesh, settings } = context;
  if (kindOfKey(key) === "ServiceEntry") {
    const object = storedServiceEntry(inputs.objects, key);
    if (object === undefined) return undefined;
    const declared = declareServiceEntry(object, defaultsFor(context, object));
    return { ...declared, exportTo: cappedExport(declared.exportTo, mesh.entryVisibility(object.namespace), object.namespace) };
  }
  const object = storedService(inputs.objects, key);
  return object === undefined ? undefined : declareKubernetesService(object, settings.clusterDomain, defaultsFor(context, object));
}

const defaultsFor = (
  { mesh }: RegistryContext,
  { namespace, cluster = "" }: Pick<ConfigObject, "namespace" | "cluster">,
): DeclarationDefaults => ({
  exportTo: mesh.defaultExportTo(""),
  distribution: mesh.distribution(`${namespace}${inCluster(cluster)}`),
});

/** Keys of the objects that declare a host, in any namespace. */
function declarerKeys({ inputs, settings }: RegistryContext, host: string): readonly string[] {
  const entries = inputs.objects.keys("host", host);
  const named = parseServiceHost(host, settings.clusterDomain);
  const key = named === undefined ? undefined : `Service/${named.namespace}/${named.name}`;
  if (key === undefined) return entries;
  return [...(inputs.objects.has(key) ? [key] : []), ...inputs.objects.keys("counterpart", key), ...entries];
}

/** What declares a host, in any namespaces, as services: that with the first declaration first. */
function inPrecedence(host: string, declarations: readonly Declaration[]): readonly ServiceRef[] {
  const [only, ...others] = declarations;
  if (only !== undefined && others.length === 0) return [{ namespace: only.namespace, host }];
  return [...Map.groupBy(declarations, ({ namespace }) => namespace)]
    .flatMap(([namespace, all]) =>
      editionsOf(all).map(({ edition, declarations: [first] }) => ({ first, ref: refOf({ namespace, host, edition }) })),
    )
    .sort((a, b) => (a.first === undefined || b.first === undefined ? 0 : compareDeclarations(a.first, b.first)))
    .map(({ ref }) => ref);
}

/** One entry per service, sorted by host. `declarations` are in order of precedence. */
function catalogOf(declarations: readonly Declaration[]): readonly CatalogEntry[] {
  const byHost = new Map<string, Declaration[]>();
  for (const one of declarations) {
    for (const host of one.hosts) {
      const found = byHost.get(host);
      if (found === undefined) byHost.set(host, [one]);
      else found.push(one);
    }
  }
  return [...byHost].flatMap(([host, all]) => entriesOf(host, all)).sort((a, b) => (a.host < b.host ? -1 : a.host > b.host ? 1 : 0));
}

function entriesOf(host: string, declarations: readonly Declaration[]): readonly CatalogEntry[] {
  const entry = (parts: readonly Declaration[]) => ({ host, needsAddress: needsAddress(host, parts), createdAt: parts[0]?.createdAt ?? 0 });
  if (declarations.length === 1) return [entry(declarations)];
  return editionsOf(declarations).map(({ edition, declarations: parts }) =>
    edition === undefined ? entry(parts) : { ...entry(parts), edition },
  );
}

function namespacesWithServices(kindNamespaces: readonly string[]): readonly string[] {
  const found = new Set<string>();
  for (const entry of kindNamespaces) {
    const [kind, namespace] = entry.split("/", 2);
    if (namespace !== undefined && (kind === "Service" || kind === "ServiceEntry")) found.add(namespace);
  }
  return [...found].sort();
}

/**
 * Addresses for hosts that have none. All of them share one range, so one query gives out the slots; hosts read theirs through buckets,
 * and a host that comes or goes re-runs a handful of look-ups and nothing behind them.
 */
function defineAutoAddresses(
  { engine, settings }: RegistryContext,
  { namespaces, catalog }: { readonly namespaces: Query<"", readonly string[]>; readonly catalog: Query<string, readonly CatalogEntry[]> },
): Query<string, readonly string[]> {
  const ranges: readonly Cidr[] = settings.autoAddressRanges.flatMap((range) => parseCidr(range) ?? []);
  const applicants = engine.query<string, readonly Applicant[]>({
    name: "registry.autoAddressApplicants",
    compute: (namespace) =>
      catalog(namespace).flatMap((entry) =>
        entry.needsAddress ? { key: serviceKey({ namespace, host: entry.host, edition: entry.edition }), createdAt: entry.createdAt } : [],
      ),
  });
  const slots = engine.query<"", readonly ReadonlyMap<string, number>[]>({
    name: "registry.autoAddressSlots",
    compute: () => inBuckets(allocateSlots(namespaces("").flatMap((namespace) => applicants(namespace)))),
  });
  const bucket = engine.query<number, ReadonlyMap<string, number> | undefined>({
    name: "registry.autoAddressBucket",
    compute: (index) => slots("")[index],
  });
  return engine.query<string, readonly string[]>({
    name: "registry.autoAddresses",
    compute: (key) => {
      const slot = bucket(bucketOf(key))?.get(key);
      return slot === undefined ? [] : ranges.map((range) => slotAddress(range, slot));
    },
  });
}
