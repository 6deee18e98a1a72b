import assert from "node:assert/strict";
import { describe, it } from "vitest";
import type { DiscoveryRequest } from "../wire/discovery-request.ts";
import { CLUSTER_TYPE, ENDPOINT_TYPE } from "../wire/type-urls.ts";
import { createNameSets } from "./name-sets.ts";
import { type Judgement, judgeDelta, judgeSotw, type Subscription } from "./subscription.ts";

const names = createNameSets();

const request = (given: Partial<DiscoveryRequest>): DiscoveryRequest => ({
  typeUrl: CLUSTER_TYPE,
  node: undefined,
  nonce: "",
  error: undefined,
  names: [],
  unsubscribe: [],
  initialVersions: new Map(),
  ...given,
});

/** `*` and the names, as one word. */
const wanted = ({ subscription }: Judgement): string =>
  [...(subscription.wildcard ? ["*"] : []), ...[...subscription.names.names].sort()].join();

interface Case {
  readonly rule: string;
  /** Requests before the one in question. */
  readonly before?: readonly Partial<DiscoveryRequest>[];
  readonly given: Partial<DiscoveryRequest>;
  readonly nonces?: { readonly inFlight?: string; readonly last?: string };
  readonly want: string;
  readonly verdict?: Judgement["verdict"];
  readonly asked?: readonly string[];
  readonly dropped?: readonly string[];
}

const sotw: readonly Case[] = [
  { rule: "naming nothing at first is everything", given: {}, want: "*" },
  { rule: "naming nothing at first is nothing for types known by name only", given: { typeUrl: ENDPOINT_TYPE }, want: "" },
  { rule: "`*` is everything", given: { names: ["*"] }, want: "*" },
  { rule: "`*` and a name are both", before: [{}], given: { names: ["*", "a"] }, want: "*,a", asked: ["a"] },
  { rule: "a name alone ends the old everything", before: [{}], given: { names: ["a"] }, want: "a", asked: ["a"] },
  { rule: "naming nothing after a name is nothing", before: [{ names: ["a"] }], given: {}, want: "", dropped: ["a"] },
  { rule: "each list is whole", before: [{ names: ["a", "b"] }], given: { names: ["b", "c"] }, want: "b,c", asked: ["c"], dropped: ["a"] },
  {
    rule: "the nonce in flight acknowledges",
    before: [{}],
    given: { nonce: "1" },
    nonces: { inFlight: "1", last: "1" },
    want: "*",
    verdict: "ack",
  },
  {
    rule: "with an error it rejects",
    before: [{}],
    given: { nonce: "1", error: { code: 3, message: "no" } },
    nonces: { inFlight: "1", last: "1" },
    want: "*",
    verdict: "nack",
  },
  {
    rule: "the last nonce, answered already, says nothing",
    before: [{}],
    given: { nonce: "1" },
    nonces: { last: "1" },
    want: "*",
    verdict: "none",
  },
  {
    rule: "an old nonce makes the whole request stale",
    before: [{ names: ["a"] }],
    given: { nonce: "1", names: ["b"] },
    nonces: { inFlight: "2", last: "2" },
    want: "a",
    verdict: "stale",
  },
];

const delta: readonly Case[] = [
  { rule: "naming nothing at first is everything", given: {}, want: "*" },
  { rule: "naming nothing at first is nothing for types known by name only", given: { typeUrl: ENDPOINT_TYPE }, want: "" },
  { rule: "a name adds to the old everything", before: [{}], given: { names: ["a"] }, want: "*,a", asked: ["a"] },
  { rule: "only unsubscribing `*` ends it", before: [{}, { names: ["a"] }], given: { unsubscribe: ["*"] }, want: "a" },
  {
    rule: "leaving the last name does not bring everything back",
    before: [{ names: ["a"] }],
    given: { unsubscribe: ["a"] },
    want: "",
    dropped: ["a"],
  },
  { rule: "a name at first is that name", given: { names: ["a"] }, want: "a", asked: ["a"] },
  { rule: "`*` can be joined later", before: [{ names: ["a"] }], given: { names: ["*"] }, want: "*,a" },
  { rule: "a name subscribed to again is asked for again", before: [{ names: ["a"] }], given: { names: ["a"] }, want: "a", asked: ["a"] },
  { rule: "a name left under `*` is answered", before: [{ names: ["*", "a"] }], given: { unsubscribe: ["a"] }, want: "*", asked: ["a"] },
  { rule: "leaving what was never wanted is nothing", before: [{ names: ["a"] }], given: { unsubscribe: ["b"] }, want: "a" },
  {
    rule: "subscriptions hold whatever the nonce says",
    before: [{ names: ["a"] }],
    given: { nonce: "1", names: ["b"] },
    nonces: { inFlight: "2", last: "2" },
    want: "a,b",
    verdict: "stale",
    asked: ["b"],
  },
  {
    rule: "the nonce in flight acknowledges",
    before: [{}],
    given: { nonce: "1" },
    nonces: { inFlight: "1", last: "1" },
    want: "*",
    verdict: "ack",
  },
  {
    rule: "with an error it rejects",
    before: [{}],
    given: { nonce: "1", error: { code: 3, message: "no" } },
    nonces: { inFlight: "1", last: "1" },
    want: "*",
    verdict: "nack",
  },
  {
    rule: "an acknowledgement may carry a subscription",
    before: [{ names: ["a"] }],
    given: { nonce: "1", names: ["b"] },
    nonces: { inFlight: "1", last: "1" },
    want: "a,b",
    verdict: "ack",
    asked: ["b"],
  },
];

for (const [variant, judge, table] of [
  ["sotw", judgeSotw, sotw],
  ["delta", judgeDelta, delta],
] as const) {
  describe(`${variant} subscriptions`, () => {
    for (const one of table) {
      it(one.rule, () => {
        let current: Subscription | undefined;
        for (const earlier of one.before ?? []) {
          current = judge({
            current,
            request: request({ ...earlier, ...(current !== undefined && { nonce: "0" }) }),
            nonces: { inFlight: undefined, last: "0" },
            names,
          }).subscription;
        }
        const nonces = { inFlight: one.nonces?.inFlight, last: one.nonces?.last ?? "0" };
        const nonce = one.given.nonce ?? (current === undefined ? "" : "0");
        const judged = judge({ current, request: request({ ...one.given, nonce }), nonces, names });
        assert.equal(wanted(judged), one.want);
        assert.equal(judged.verdict, one.verdict ?? "none");
        assert.deepEqual(judged.asked, one.asked ?? []);
        assert.deepEqual(judged.dropped, one.dropped ?? []);
        assert.equal(judged.first, current === undefined);
      });
    }
  });
}

describe("name sets", () => {
  it("are one object when equal, however they came about", () => {
    const set = names.of(["b", "a", "b"]);
    assert.equal(names.of(["a", "b"]), set);
    assert.equal(names.edit(names.of(["a", "c"]), ["b"], ["c"]), set);
    assert.equal(names.edit(set, ["a"], ["z"]), set);
    assert.notEqual(names.of(["a"]).id, set.id);
  });
});

it("a request that swaps tens of thousands of names holds nobody up", () => {
  const listed = (prefix: string): readonly string[] => Array.from({ length: 30_000 }, (_, index) => `${prefix}-${index}.default.svc`);
  const [old, next] = [listed("old"), listed("new")];
  const nonces = { inFlight: undefined, last: undefined };
  const startedAt = performance.now();
  const first = judgeDelta({ current: undefined, request: request({ names: old, unsubscribe: next }), nonces, names });
  const swap = judgeDelta({ current: first.subscription, request: request({ names: next, unsubscribe: old }), nonces, names });
  assert.ok(performance.now() - startedAt < 700, `${performance.now() - startedAt} ms`);
  assert.equal(swap.subscription.names, names.of(next));
  assert.deepEqual(swap.dropped, old);
});
