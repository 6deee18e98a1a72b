import { describe, expect, it } from "vitest";
import type { ChainMatch, FilterChainInput } from "../../envoy/listener/filter-chain.ts";
import { withoutOverlaps } from "./overlaps.ts";

const chain = (match: ChainMatch): FilterChainInput => ({
  match,
  content: { tcp: { statPrefix: "x", destinations: [{ cluster: "x", weight: 0 }], accessLogs: [] } },
});

describe("withoutOverlaps", () => {
  const table: readonly [title: string, given: readonly ChainMatch[], left: readonly ChainMatch[]][] = [
    [
      "keeps chains that differ",
      [{ serverNames: ["a"] }, { serverNames: ["b"] }, {}],
      [{ serverNames: ["a"] }, { serverNames: ["b"] }, {}],
    ],
    ["drops a second chain for everything", [{}, {}], [{}]],
    [
      "leaves a later chain what nobody has",
      [{ serverNames: ["a", "b"] }, { serverNames: ["b", "c"] }],
      [{ serverNames: ["a", "b"] }, { serverNames: ["c"] }],
    ],
    ["drops a chain with nothing left", [{ serverNames: ["a", "b"] }, { serverNames: ["b"] }], [{ serverNames: ["a", "b"] }]],
    [
      "does the same with address ranges",
      [{ destinations: ["10.0.0.0/8"] }, { destinations: ["10.0.0.0/8", "192.0.2.0/24"] }],
      [{ destinations: ["10.0.0.0/8"] }, { destinations: ["192.0.2.0/24"] }],
    ],
    [
      "tells the same name apart by transport",
      [{ serverNames: ["a"], transport: "tls" }, { serverNames: ["a"] }],
      [{ serverNames: ["a"], transport: "tls" }, { serverNames: ["a"] }],
    ],
    [
      "says a range once",
      [{ destinations: ["10.0.0.0/8", "10.1.0.0/8", "192.0.2.1/32"] }],
      [{ destinations: ["10.0.0.0/8", "192.0.2.1"] }],
    ],
    ["says a name once", [{ serverNames: ["a", "b", "A"] }], [{ serverNames: ["a", "b"] }]],
    ["leaves out names that Envoy cannot match", [{ serverNames: ["*-a.b", "*.b"] }, { serverNames: ["*c"] }], [{ serverNames: ["*.b"] }]],
    ["takes the name of everything for none", [{ serverNames: ["*"], transport: "tls" }], [{ transport: "tls" }]],
  ];
  for (const [title, given, left] of table) {
    it(title, () => expect(withoutOverlaps(given.map(chain)).map(({ match }) => match)).toEqual(left));
  }
});
