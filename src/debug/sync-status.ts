import {
  CLUSTER_TYPE,
  ENDPOINT_TYPE,
  EXTENSION_CONFIG_TYPE,
  LISTENER_TYPE,
  ROUTE_TYPE,
  SECRET_TYPE,
  shortTypeName,
} from "../wire/type-urls.ts";
import type { StreamState, TypeState } from "../xds/state.ts";
import type { ResourceStatus, SyncState, SyncStatus, TypeSync } from "./api-types.ts";
import { isoTime } from "./object-origin.ts";

/** Prefixes of Istio's `…_sent` and `…_acked` fields. */
const FIELD_OF_TYPE: ReadonlyMap<string, string> = new Map([
  [CLUSTER_TYPE, "cluster"],
  [LISTENER_TYPE, "listener"],
  [ROUTE_TYPE, "route"],
  [ENDPOINT_TYPE, "endpoint"],
  [EXTENSION_CONFIG_TYPE, "extensionconfig"],
]);

/**
 * Stands for a nonce where a proxy came back with all it needs and was sent nothing: readers of `syncz` take equal, non-empty texts for
 * "in step".
 */
const NOTHING_TO_SEND = "unchanged";

/**
 * Connected proxies and how far they are, as Istio's `/debug/syncz` gives it, in order of name. A stream that has not said who it is, is left out. Each is looked
 * at when it is asked for.
 */
export function* syncStatus(streams: readonly StreamState[], instance: string): Generator<SyncStatus, void> {
  const named = withoutSideStreams(streams.filter((stream) => stream.node !== "")).map(
    (stream) => [proxyIdOf(stream.node), stream] as const,
  );
  named.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  for (const [, stream] of named) yield statusOf(stream, instance);
}

/** A proxy that asks for its secrets on a stream of their own is one proxy all the same: their state is put beside that of the rest. */
export function withoutSideStreams(streams: readonly StreamState[]): readonly StreamState[] {
  const isSide = ({ types }: StreamState): boolean => types.length > 0 && types.every(({ typeUrl }) => typeUrl === SECRET_TYPE);
  const main = streams.filter((stream) => !isSide(stream));
  const known = new Set(main.map(({ node }) => node));
  const side = Map.groupBy(streams.filter(isSide), ({ node }) => node);
  return [
    ...main.map((stream) => ({ ...stream, types: [...stream.types, ...(side.get(stream.node) ?? []).flatMap(({ types }) => types)] })),
    ...[...side.values()].flat().filter(({ node }) => !known.has(node)),
  ];
}

/** `name.namespace`, by which people and tools call a proxy: the third part of its node id. */
export const proxyIdOf = (node: string): string => node.split("~")[2] ?? node;

/** How a proxy stands with one type. */
export function syncState(type: TypeState): SyncState {
  if (type.rejected.length > 0) return "NACKED";
  if (type.inSync) return "SYNCED";
  return type.sentNonce === undefined ? "NOT SENT" : "STALE";
}

function statusOf(stream: StreamState, instance: string): SyncStatus {
  return {
    cluster_id: stream.view?.clusterId ?? "",
    proxy: proxyIdOf(stream.node),
    proxy_type: stream.view?.type ?? "",
    istio_version: stream.view?.istioVersion ?? "",
    ...Object.fromEntries(stream.types.flatMap(nonces)),
    resources: Object.fromEntries(stream.types.map((type) => [type.typeUrl, resourceStatus(type)])),
    connection_id: stream.id,
    address: stream.peer,
    protocol: stream.variant,
    connected_at: isoTime(stream.connectedAt),
    istiod: instance,
    types: stream.types.map(typeSync),
  };
}

function resourceStatus(type: TypeState): ResourceStatus {
  const sent = type.sentNonce ?? (type.inSync ? NOTHING_TO_SEND : undefined);
  const acked = type.inSync ? sent : type.ackedNonce;
  return {
    ...(sent !== undefined && { sent }),
    ...(acked !== undefined && { acked }),
    ...(type.sentAt !== undefined && { sentTime: isoTime(type.sentAt) }),
    ...(type.lastError !== undefined && { lastError: type.lastError }),
  };
}

function nonces(type: TypeState): [string, string][] {
  const field = FIELD_OF_TYPE.get(type.typeUrl);
  const { sent, acked } = resourceStatus(type);
  if (field === undefined || sent === undefined) return [];
  return [[`${field}_sent`, sent], ...(acked === undefined ? [] : [[`${field}_acked`, acked] as [string, string]])];
}

function typeSync(type: TypeState): TypeSync {
  return {
    type: shortTypeName(type.typeUrl).toUpperCase(),
    state: syncState(type),
    resources: type.held,
    ...(type.sentAt !== undefined && { sent_at: isoTime(type.sentAt) }),
    ...(type.ackedAt !== undefined && { acked_at: isoTime(type.ackedAt) }),
    nacks: type.nacks,
    ...(type.lastError !== undefined && { last_error: type.lastError }),
    rejected: type.rejected.map(({ name, version, error, fallback }) => ({
      name,
      version,
      error,
      ...(fallback !== undefined && { kept: fallback }),
    })),
    failed: type.failed.map(({ name, message }) => ({ name, message })),
  };
}
