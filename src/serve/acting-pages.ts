import type { HttpAnswer, HttpRoute } from "../debug/http-route.ts";
import { askedStreams } from "../debug/page.ts";
import type { XdsServer } from "../xds/server.ts";
import type { Profiler } from "./profiler.ts";

export interface ActingPagesOptions {
  readonly xds: Pick<XdsServer, "state" | "disconnect">;
  readonly profiler: Profiler;
}

const DEFAULT_SECONDS = { cpu: 30, heap: 10 } as const;
const MOST_SECONDS = 120;

/** Pages that do more than show something: for those who hold the debug token. */
export const actingPages = ({ xds, profiler }: ActingPagesOptions): readonly HttpRoute[] => [
  {
    path: "/debug/force_disconnect",
    method: "POST",
    open: false,
    about: "?proxyID=name.namespace: cuts the connections of a proxy, which then comes back",
    answer(query) {
      const asked = askedStreams(xds.state(), query);
      if (!("streams" in asked)) return asked;
      return { status: 200, body: { disconnected: asked.streams.map(({ id }) => xds.disconnect(id)).includes(true) } };
    },
  },
  {
    path: "/debug/pprof/profile",
    open: false,
    acts: true,
    about: `where CPU time goes, for \`go tool pprof\`; ?seconds=${DEFAULT_SECONDS.cpu}`,
    answer: (query) => profile(profiler, "cpu", query),
  },
  {
    path: "/debug/pprof/heap",
    open: false,
    acts: true,
    about: `what was allocated in a while and is still in use, for \`go tool pprof\`; ?seconds=${DEFAULT_SECONDS.heap}`,
    answer: (query) => profile(profiler, "heap", query),
  },
];

async function profile(profiler: Profiler, what: keyof typeof DEFAULT_SECONDS, query: URLSearchParams): Promise<HttpAnswer> {
  const seconds = Number(query.get("seconds") ?? DEFAULT_SECONDS[what]);
  if (!(seconds > 0 && seconds <= MOST_SECONDS))
    return { status: 400, body: { error: `seconds must be more than 0, and ${MOST_SECONDS} at most` } };
  const body = await profiler.take(what, seconds);
  return body === undefined
    ? { status: 409, body: { error: "another profile is being taken; ask again when it is done" } }
    : { status: 200, body, contentType: "application/octet-stream" };
}
