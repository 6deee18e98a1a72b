import type { StreamState } from "../xds/state.ts";
import type { HttpAnswer, HttpRoute } from "./http-route.ts";
import { proxyIdOf } from "./sync-status.ts";

/** A debug page. */
export interface Page extends Pick<HttpRoute, "path" | "about" | "answer"> {
  /** It can be shown as far as it is about one namespace. */
  readonly divisible?: true;
}

export const ok = (body: unknown): HttpAnswer => ({ status: 200, body });

/** By these words Istio's `istioctl` knows that it has to ask another replica. */
export const NOT_CONNECTED_HERE = "Proxy not connected to this Pilot instance. It may be connected to another instance.";

export const notConnected = (wanted: string): HttpAnswer => ({
  status: 404,
  body: { error: `no proxy named ${wanted} is connected; /debug/syncz names those that are. ${NOT_CONNECTED_HERE}` },
});

/** The proxy that is asked about by its newest connection, or what to say where it is not named or not here. */
export function askedStream(streams: readonly StreamState[], query: URLSearchParams): { readonly stream: StreamState } | HttpAnswer {
  const asked = askedStreams(streams, query);
  return "streams" in asked ? { stream: asked.streams[0] } : asked;
}

/** Streams of one proxy, the newest first. */
export type ProxyStreams = readonly [StreamState, ...StreamState[]];

/** All connections of the proxy that is asked about, or what to say where it is not named or not here. */
export function askedStreams(streams: readonly StreamState[], query: URLSearchParams): { readonly streams: ProxyStreams } | HttpAnswer {
  const wanted = query.get("proxyID") ?? "";
  if (wanted === "") return { status: 400, body: { error: "say which proxy: ?proxyID=name.namespace" } };
  const found = findStreams(streams, wanted);
  return found === undefined ? notConnected(wanted) : { streams: found };
}

/** All connections of a proxy, by node id, `name.namespace`, or a name that only one proxy has. */
export function findStreams(streams: readonly StreamState[], wanted: string): ProxyStreams | undefined {
  const newestFirst = streams.filter(({ node }) => node !== "").sort((a, b) => b.connectedAt - a.connectedAt);
  const newest = newestFirst.find(({ node }) => node === wanted || proxyIdOf(node) === wanted) ?? onlyNamed(newestFirst, wanted);
  return newest && [newest, ...newestFirst.filter((stream) => stream !== newest && stream.node === newest.node)];
}

function onlyNamed(streams: readonly StreamState[], name: string): StreamState | undefined {
  const named = streams.filter(({ view }) => view?.name === name);
  return new Set(named.map(({ node }) => node)).size === 1 ? named[0] : undefined;
}
