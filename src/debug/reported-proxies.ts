import type { ReportedProxy } from "../generate/patches/report.ts";
import type { DebugDeps } from "./debug-deps.ts";

type Streams = ReturnType<DebugDeps["xds"]["state"]>;

/**
 * Connected proxies with what they want and what they refused, as a report on patches needs them, each looked at when it is asked for. A proxy with several
 * streams is one.
 */
export function* reportedProxies(xds: DebugDeps["xds"], streams: Streams = xds.state()): Generator<ReportedProxy, void> {
  for (const ofOne of Map.groupBy(streams, ({ node }) => node).values()) {
    const [first, ...others] = ofOne.flatMap((stream) => reportedStream(xds, stream));
    if (first !== undefined) yield { view: first.view, types: [first, ...others].flatMap(({ types }) => types) };
  }
}

function reportedStream(xds: DebugDeps["xds"], { id, types: states }: Streams[number]): readonly ReportedProxy[] {
  const dump = xds.dump(id);
  const rejected = (typeUrl: string) => states.find((state) => state.typeUrl === typeUrl)?.rejected ?? [];
  return dump === undefined ? [] : [{ view: dump.view, types: dump.types.map((type) => ({ ...type, rejected: rejected(type.typeUrl) })) }];
}
