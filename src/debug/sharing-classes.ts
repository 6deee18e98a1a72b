import { formatLocality } from "../model/locality.ts";
import type { ProxyView } from "../model/proxy.ts";
import { bodySize, type Encoded, type ResourceSet } from "../wire/encoded.ts";
import { shortTypeName } from "../wire/type-urls.ts";
import type { StreamDump } from "../xds/state.ts";
import type { ResourceClass, TypeClasses } from "./api-types.ts";
import { proxyIdOf } from "./sync-status.ts";

/** Enough to recognise a class by. */
const SHOWN_PROXIES = 5;

/**
 * How resources are shared, by type: sets that are the same object are one class. A class is found here, after the fact; nothing is keyed
 * by it. One type after the other, as they are asked for.
 */
export function* sharingClasses(streams: readonly StreamDump[]): Generator<TypeClasses, void> {
  const byType = new Map<string, Map<ResourceSet, ProxyView[]>>();
  for (const { view, types } of streams) {
    for (const { typeUrl, offered } of types) {
      const sets = at(byType, typeUrl, () => new Map<ResourceSet, ProxyView[]>());
      at(sets, offered, () => []).push(view);
    }
  }
  for (const [typeUrl, sets] of byType) yield typeClasses(typeUrl, sets);
}

function at<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const value = map.get(key) ?? make();
  map.set(key, value);
  return value;
}

function typeClasses(typeUrl: string, sets: ReadonlyMap<ResourceSet, readonly ProxyView[]>): TypeClasses {
  const distinct = new Set<Encoded>();
  for (const { resources } of sets.keys()) for (const resource of resources.values()) distinct.add(resource);
  return {
    type: shortTypeName(typeUrl).toUpperCase(),
    streams: [...sets.values()].reduce((sum, views) => sum + views.length, 0),
    resources: distinct.size,
    bytes: bytesOf(distinct),
    splitBy: splitBy([...sets.values()]),
    classes: [...sets].map(classOf).sort((a, b) => b.streams - a.streams),
  };
}

const classOf = ([{ resources }, views]: readonly [ResourceSet, readonly ProxyView[]]): ResourceClass => ({
  streams: views.length,
  resources: resources.size,
  bytes: bytesOf(resources.values()),
  proxies: views.slice(0, SHOWN_PROXIES).map((view) => proxyIdOf(view.id)),
});

function bytesOf(resources: Iterable<Encoded>): number {
  let bytes = 0;
  for (const resource of resources) bytes += bodySize(resource);
  return bytes;
}

/** What may differ between proxies and so split a class. */
const ATTRIBUTES: Readonly<Record<string, (view: ProxyView) => string>> = {
  type: (view) => view.type,
  namespace: (view) => view.namespace,
  sidecar: (view) => view.sidecar ?? "",
  labels: (view) => JSON.stringify(Object.entries(view.labels).sort()),
  addresses: (view) => view.addresses.join(),
  serviceAccount: (view) => view.serviceAccount,
  locality: (view) => formatLocality(view.locality),
  network: (view) => view.network,
  clusterId: (view) => view.clusterId,
  nodeName: (view) => view.nodeName,
  interception: (view) => view.interception,
  dnsCapture: (view) => String(view.dnsCapture),
  hasIdentity: (view) => String(view.hasIdentity),
  proven: (view) => String(view.proven),
};

/** Attributes with one value in each class, and not the same one in all of them. */
function splitBy(classes: readonly (readonly ProxyView[])[]): readonly string[] {
  if (classes.length < 2) return [];
  return Object.entries(ATTRIBUTES).flatMap(([name, attribute]) => {
    const values = classes.map((views) => new Set(views.map(attribute)));
    const explains = values.every((one) => one.size === 1) && new Set(values.flatMap((one) => [...one])).size > 1;
    return explains ? [name] : [];
  });
}
