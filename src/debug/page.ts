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

/** The proxy that is asked about, or what to say where it is not named or not here. */
export function askedStream(streams: readonly StreamState[], query: URLSearchParams): { readonly stream: StreamState } | HttpAnswer {
  const wanted = query.get("proxyID") ?? "";
  if (wanted === "") return { status: 400, body: { error: "say which proxy: ?proxyID=name.namespace" } };
  const stream = findStream(streams, wanted);
  return stream === undefined ? notConnected(wanted) : { stream };
}

/** By node id, `name.namespace`, or a name that only one proxy has; of several connections of one proxy the newest. */
export function findStream(streams: readonly StreamState[], wanted: string): StreamState | undefined {
  const newestFirst = [...streams].filter(({ node }) => node !== "").sort((a, b) => b.connectedAt - a.connectedAt);
  const exact = newestFirst.find(({ node }) => node === wanted || proxyIdOf(node) === wanted);
  if (exact !== undefined) return exact;
  const byName = newestFirst.filter(({ view }) => view?.name === wanted);
  return new Set(byName.map(({ node }) => node)).size === 1 ? byName[0] : undefined;
}
