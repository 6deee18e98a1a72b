import { encodedBytes } from "../wire/encode.ts";
import type { Encoded } from "../wire/encoded.ts";
import { bytesField, messageField, numberField, structBytes, textField } from "../wire/field-writer.ts";
import type { StreamState, TypeState } from "../xds/state.ts";
import type { SyncState } from "./api-types.ts";
import { proxyIdOf, syncState, withoutSideStreams } from "./sync-status.ts";

const CLIENT_CONFIG = "type.googleapis.com/envoy.service.status.v3.ClientConfig";

/** `envoy.service.status.v3.ConfigStatus`. */
const STATUS = { SYNCED: 1, "NOT SENT": 2, STALE: 3, NACKED: 4 } as const satisfies Record<SyncState, number>;

/**
 * Connected proxies and how far they are, as Istio's `istioctl` reads it over xDS: an `envoy.service.status.v3.ClientConfig` of each. Written by hand, since
 * nothing else of that package is used. Where a namespace is given, those of it alone.
 */
export const clientConfigs = (streams: readonly StreamState[], namespace: string | undefined): readonly Encoded[] =>
  withoutSideStreams(streams.filter(({ node }) => node !== ""))
    .filter(({ view }) => view !== undefined && (namespace === undefined || view.namespace === namespace))
    .map((stream) => ({ stream, id: proxyIdOf(stream.node) }))
    .sort((a, b) => (a.id < b.id ? -1 : 1))
    .map(({ stream, id }) => encodedBytes(CLIENT_CONFIG, id, clientConfig(id, stream)));

function clientConfig(id: string, { view, types }: StreamState): Buffer {
  const metadata = { CLUSTER_ID: view?.clusterId ?? "", NAMESPACE: view?.namespace ?? "", ISTIO_VERSION: view?.istioVersion ?? "" };
  const node = messageField(1, [textField(1, id), bytesField(3, structBytes(metadata))]);
  const configs = types.toSorted((a, b) => (a.typeUrl < b.typeUrl ? -1 : 1)).map((type) => messageField(3, genericConfig(type)));
  return Buffer.concat([node, ...configs]);
}

function genericConfig(type: TypeState): readonly Buffer[] {
  const state = syncState(type);
  const at = type.sentAt === undefined ? [] : [numberField(1, Math.floor(type.sentAt / 1_000))];
  const error = state === "NACKED" ? [messageField(8, [messageField(2, at), textField(3, type.lastError ?? "")])] : [];
  return [textField(1, type.typeUrl), ...(at.length > 0 ? [messageField(5, at)] : []), numberField(6, STATUS[state]), ...error];
}
