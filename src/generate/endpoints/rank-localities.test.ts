import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { holds } from "../../../test/support/holds.ts";
import { formatLocality, parseLocality } from "../../model/locality.ts";
import type { LocalityRules, Place } from "./assignment-key.ts";
import { matchesLocality, type PlacedEndpoint, rankLocalities } from "./rank-localities.ts";

const endpoint = (
  address: string,
  locality: string,
  options: { readonly weight?: number; readonly labels?: Record<string, string> } = {},
): PlacedEndpoint => ({
  endpoint: { address, port: 80, unixPath: false, weight: options.weight ?? 1, health: "healthy", mutualTls: false, workload: "" },
  locality: parseLocality(locality),
  labels: options.labels ?? {},
});

const ranked = (endpoints: readonly PlacedEndpoint[], rules: LocalityRules | undefined, place: Place): Record<string, string> =>
  Object.fromEntries(
    rankLocalities(endpoints, rules, place).map(({ locality, priority, weight, endpoints: members }) => [
      `${formatLocality(locality)} p${priority}`,
      `w${weight}: ${members.map(({ address }) => address).join()}`,
    ]),
  );

const world = [
  endpoint("a", "eu/west/a"),
  endpoint("b", "eu/west/b"),
  endpoint("c", "eu/north/a"),
  endpoint("d", "us/east/a", { weight: 2 }),
  endpoint("e", "asia/south/a"),
];
const here: Place = { locality: parseLocality("eu/west/a") };

describe("localities", () => {
  it("are one priority without rules", () =>
    expect(ranked([endpoint("a", "eu"), endpoint("b", "eu", { weight: 3 }), endpoint("c", "")], undefined, {})).toEqual({
      "eu p0": "w4: a,b",
      " p0": "w1: c",
    }));

  it("fail over by distance, first to the region that is named", () =>
    expect(ranked(world, { kind: "failover", regions: { eu: "us" } }, here)).toEqual({
      "eu/west/a p0": "w1: a",
      "eu/west/b p1": "w1: b",
      "eu/north/a p2": "w1: c",
      "us/east/a p3": "w2: d",
      "asia/south/a p4": "w1: e",
    }));

  it("have no gaps between priorities", () =>
    expect(ranked(world.slice(2), { kind: "failover", regions: {} }, here)).toEqual({
      "eu/north/a p0": "w1: c",
      "us/east/a p1": "w2: d",
      "asia/south/a p1": "w1: e",
    }));

  it("are not ranked for a client that does not know where it is", () =>
    expect(
      Object.keys(ranked(world, { kind: "failover", regions: {} }, { locality: parseLocality("") })).every((key) => key.endsWith("p0")),
    ).toBe(true));

  it("share what a distribution gives them by weight; the others get nothing", () => {
    const rules: LocalityRules = { kind: "distribute", rules: [{ from: "eu/*", to: { "eu/west/*": 70, "us/east/*": 30 } }] };
    expect(ranked(world, rules, here)).toEqual({ "eu/west/a p0": "w35: a", "eu/west/b p0": "w35: b", "us/east/a p0": "w30: d" });
    expect(Object.keys(ranked(world, rules, { locality: parseLocality("us/east/a") }))).toHaveLength(5);
  });

  it("split by the run of labels shared with the client", () => {
    const labelled = [
      endpoint("a", "eu", { labels: { region: "eu", version: "v1" } }),
      endpoint("b", "eu", { labels: { region: "eu", version: "v2" } }),
      endpoint("c", "us", { labels: { region: "us", version: "v1" } }),
    ];
    const rules: LocalityRules = { kind: "priority", regions: undefined, labels: ["region", "version"] };
    expect(ranked(labelled, rules, { labels: { region: "eu", version: "v1" } })).toEqual({
      "eu p0": "w1: a",
      "eu p1": "w1: b",
      "us p2": "w1: c",
    });
    expect(ranked(labelled, { kind: "priority", regions: undefined, labels: ["version=v2"] }, { labels: {} })).toEqual({
      "eu p0": "w1: b",
      "eu p1": "w1: a",
      "us p1": "w1: c",
    });
  });

  it("never lose or double an endpoint, and never skip a priority", () => {
    const localities = fc.constantFrom("", "eu", "eu/west", "eu/west/a", "us/east", "asia");
    holds(
      fc.property(fc.array(localities, { maxLength: 12 }), localities, (places, own) => {
        const endpoints = places.map((place, index) => endpoint(String(index), place));
        const groups = rankLocalities(endpoints, { kind: "failover", regions: { eu: "us" } }, { locality: parseLocality(own) });
        expect(groups.flatMap(({ endpoints: members }) => members.map(({ address }) => Number(address))).sort((a, b) => a - b)).toEqual(
          places.map((_, index) => index),
        );
        const priorities = new Set(groups.map(({ priority }) => priority));
        expect([...priorities].sort()).toEqual([...priorities].map((_, index) => index));
      }),
    );
  });
});

describe("matchesLocality", () => {
  const table: readonly [pattern: string, locality: string, want: boolean][] = [
    ["*", "eu/west/a", true],
    ["eu", "eu/west/a", true],
    ["eu/*", "eu/west/a", true],
    ["eu/west/*", "eu/west/a", true],
    ["eu/west/b", "eu/west/a", false],
    ["eu/west/a", "eu/west", false],
    ["us/*", "eu/west/a", false],
  ];
  for (const [pattern, locality, want] of table) {
    it(`${pattern} ${want ? "takes" : "leaves"} ${locality}`, () => expect(matchesLocality(pattern, parseLocality(locality))).toBe(want));
  }
});
