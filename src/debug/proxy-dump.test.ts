import assert from "node:assert/strict";
import { describe, it } from "vitest";
import type { Encoded } from "../wire/encoded.ts";
import { CLUSTER_TYPE, SECRET_TYPE } from "../wire/type-urls.ts";
import { proxyDump } from "./proxy-dump.ts";
import { clusterOf, dumpOf, setOf, testView, typeStateOf } from "./stream-fixture.ts";

/** A stream that has this of one type, all of it acknowledged. */
function stream(typeUrl: string, held: readonly Encoded[], wildcard = false) {
  const wanted = { wildcard, names: { id: 0, names: new Set(held.map(({ name }) => name)) } };
  const dump = { ...dumpOf(testView(), [], setOf()), types: [{ typeUrl, wanted, held, offered: setOf(...held) }] };
  return { dump, types: [typeStateOf({ typeUrl })] };
}

/** Names and versions of each type, as held and as offered. */
const contents = ({ types }: ReturnType<typeof proxyDump>) =>
  Object.fromEntries(
    types.map(({ typeUrl, held, offered }) => [typeUrl, [held, [...offered.resources.values()]].map((list) => list.map(told).sort())]),
  );
const told = ({ name, version }: Encoded): string => `${name} ${version}`;

describe("proxyDump", () => {
  it("has what came on any stream, each type once", () => {
    const [cluster, one, two] = [clusterOf("a"), clusterOf("one"), clusterOf("two")];
    const joined = proxyDump([stream(SECRET_TYPE, [two]), stream(SECRET_TYPE, [one]), stream(CLUSTER_TYPE, [cluster], true)]);
    assert.deepEqual(contents(joined), {
      [SECRET_TYPE]: [[told(one), told(two)].sort(), [told(one), told(two)].sort()],
      [CLUSTER_TYPE]: [[told(cluster)], [told(cluster)]],
    });
  });

  it("tells of a resource what the newest stream that has it does", () => {
    const [before, after] = [clusterOf("a", "1"), clusterOf("a", "2")];
    assert.deepEqual(contents(proxyDump([stream(SECRET_TYPE, [after]), stream(SECRET_TYPE, [before])])), {
      [SECRET_TYPE]: [[told(after)], [told(after)]],
    });
  });

  it("forgets what an earlier connection had of everything, and keeps what was asked for by name", () => {
    const [gone, asked, now] = [clusterOf("gone"), clusterOf("asked"), clusterOf("now")];
    const joined = proxyDump([stream(CLUSTER_TYPE, [now], true), stream(CLUSTER_TYPE, [asked]), stream(CLUSTER_TYPE, [gone], true)]);
    assert.deepEqual(contents(joined), {
      [CLUSTER_TYPE]: [
        [told(asked), told(now)],
        [told(asked), told(now)],
      ],
    });
  });

  it("knows what was refused on any stream, by the newest", () => {
    const refusing = (name: string, error: string) => ({
      ...stream(CLUSTER_TYPE, []),
      types: [typeStateOf({ rejected: [{ name, version: "1", error, fallback: undefined }] })],
    });
    const { rejected } = proxyDump([refusing("a", "new"), refusing("a", "old"), refusing("b", "other")]);
    assert.deepEqual([...(rejected.get(CLUSTER_TYPE) ?? [])].map(([name, { error }]) => [name, error]).sort(), [
      ["a", "new"],
      ["b", "other"],
    ]);
  });
});
