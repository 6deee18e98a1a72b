import { expect, it } from "vitest";
import { clusterStates } from "./cluster-states.ts";
import { type Checked, checksOf } from "./plane-checks.ts";
import type { SourceState } from "./running-sources.ts";

const NOW = Date.parse("2030-01-01T00:10:00Z");
const FAULT = "the server cannot be reached";

const stateOf = (state: Partial<SourceState>): SourceState => ({
  ...{ address: "k8s://west", name: "kubernetes:west", loaded: true, failure: undefined, failingSince: undefined },
  ...state,
});

const checkOf = (state: Partial<SourceState>): unknown =>
  checksOf({
    sources: { states: () => [stateOf(state)] },
    store: { problems: () => [] },
    mesh: { problems: [] },
    serving: { yes: true },
    clock: { now: () => NOW },
  } as unknown as Checked)[0];

it("a source that fails says for how long what it said may have been out of date", () => {
  expect(checkOf({ failure: FAULT, failingSince: NOW - 40_000 })).toEqual({
    name: "source k8s://west",
    ok: false,
    blocks: false,
    detail: `stale for 40 s: ${FAULT}`,
  });
  expect(checkOf({ failure: FAULT, failingSince: NOW - 600_000 })).toMatchObject({ detail: `stale for 10 min: ${FAULT}` });
});

it("a source that never said anything has nothing that could be stale", () => {
  expect(checkOf({ failure: FAULT, failingSince: NOW - 40_000, loaded: false })).toMatchObject({ ok: false, blocks: true, detail: FAULT });
  expect(checkOf({ failure: FAULT })).toMatchObject({ ok: false, detail: FAULT });
  expect(checkOf({})).toMatchObject({ ok: true, detail: "loaded" });
});

it("the page of clusters says since when", () => {
  expect(clusterStates([stateOf({ failure: FAULT, failingSince: NOW }), stateOf({ address: "k8s://" })], "east")).toEqual([
    { id: "west", syncStatus: "timeout", failure: FAULT, staleSince: "2030-01-01T00:10:00.000Z" },
    { id: "east", syncStatus: "synced" },
  ]);
});
