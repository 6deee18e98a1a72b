import type { ProxyView } from "../model/proxy.ts";
import type { StreamDump, StreamState } from "../xds/state.ts";
import type { Connection, Connections, Json } from "./api-types.ts";
import { isoTime } from "./object-origin.ts";

/** Who is connected (`/debug/connections`). */
export function connections(streams: readonly StreamState[]): Connections {
  return { totalClients: streams.length, clients: streams.values().map(connectionOf) };
}

/** Who is connected, what they said of themselves and what they watch (`/debug/adsz`). `dumpOf` gives what one stream subscribes to. */
export function connectionDetails(streams: readonly StreamState[], dumpOf: (id: string) => StreamDump | undefined): Connections {
  const clients = streams.values().map((stream) => {
    const dump = dumpOf(stream.id);
    return {
      ...connectionOf(stream),
      ...(stream.view !== undefined && seenAs(stream.view)),
      ...(dump !== undefined && { watches: watchesOf(dump) }),
    };
  });
  return { totalClients: streams.length, clients };
}

const connectionOf = (stream: StreamState): Connection => ({
  connectionId: `${stream.node}-${stream.id}`,
  connectedAt: isoTime(stream.connectedAt),
  address: stream.peer,
  protocol: stream.variant,
});

function seenAs(view: ProxyView): Pick<Connection, "metadata" | "labels" | "locality" | "sidecar"> {
  const metadata = JSON.parse(view.metadata.raw) as Json;
  return {
    metadata,
    labels: view.labels,
    locality: { region: view.locality.region, zone: view.locality.zone, sub_zone: view.locality.subzone },
    ...(view.sidecar !== undefined && { sidecar: view.sidecar }),
  };
}

function watchesOf(dump: StreamDump): Readonly<Record<string, readonly string[]>> {
  return Object.fromEntries(
    dump.types.map(({ typeUrl, wanted }) => [typeUrl, [...(wanted.wildcard ? ["*"] : []), ...[...wanted.names.names].sort()]]),
  );
}
