import { shortTypeName } from "../wire/type-urls.ts";
import type { RoundSummary } from "../xds/rounds.ts";
import type { StreamState, TypeState } from "../xds/state.ts";
import type { PushStatus, TroubledResource } from "./api-mesh-types.ts";
import { proxyIdOf } from "./sync-status.ts";

/** What came of the last push that is through, and how proxies stand now (`/debug/push_status`): who is behind, what was refused and what could not be made. */
export function pushStatus(last: RoundSummary | undefined, streams: readonly StreamState[]): PushStatus {
  const known = streams.filter(({ node }) => node !== "").map(({ node, types }) => ({ proxy: proxyIdOf(node), types }));
  const resources = (
    troubled: (type: TypeState) => readonly { readonly name: string; readonly message: string }[],
  ): readonly TroubledResource[] =>
    known.flatMap(({ proxy, types }) =>
      types.flatMap((type) => troubled(type).map(({ name, message }) => ({ proxy, type: nameOf(type.typeUrl), name, message }))),
    );
  return {
    ...(last !== undefined && { last: lastPush(last) }),
    behind: known.flatMap(({ proxy, types }) => {
      const late = types.filter(({ inSync }) => !inSync);
      return late.length === 0 ? [] : [{ proxy, types: late.map(({ typeUrl }) => nameOf(typeUrl)) }];
    }),
    rejected: resources(({ rejected }) => rejected.map(({ name, error }) => ({ name, message: error }))),
    failed: resources(({ failed }) => failed),
  };
}

const nameOf = (typeUrl: string): string => shortTypeName(typeUrl).toUpperCase();

const lastPush = ({ round, resources, ms, ...rest }: RoundSummary): NonNullable<PushStatus["last"]> => ({
  push: round,
  ...rest,
  ms: Math.round(ms),
  resources: Object.fromEntries([...resources].map(([typeUrl, count]) => [nameOf(typeUrl), count])),
});
