import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { type MatchInput, NO_HEADER_CHANGES, type RouteInput } from "../../envoy/route/route-input.ts";
import { callRoutes } from "./call-route.ts";

const SITE = { authority: "greeter.shop.svc.cluster.local:7070", cluster: "outbound|7070||greeter.shop.svc.cluster.local" };
const ANY: MatchInput = { path: undefined, caseSensitive: true, headers: [], queryParams: [], claims: [] };

const route = (match: Partial<MatchInput>, fields: Partial<RouteInput> = {}): RouteInput => ({
  name: "rule",
  match: { ...ANY, ...match },
  action: {
    kind: "route",
    destinations: [{ cluster: "a", weight: 0, request: { add: [], remove: ["x"] }, response: NO_HEADER_CHANGES, hostRewrite: "elsewhere" }],
    timeoutMs: 0,
    retry: undefined,
    rewrite: { prefix: "/x", regex: undefined, authority: undefined },
    mirrors: [{ cluster: "b", share: { numerator: 100, of: "hundred" } }],
    hashPolicies: [],
  },
  request: { add: [{ name: "x", value: "1", append: false }], remove: [] },
  response: NO_HEADER_CHANGES,
  cors: undefined,
  fault: undefined,
  statPrefix: "stat",
  operation: "op",
  origin: undefined,
  ...fields,
});

const exact = (name: string, value: string, invert = false) => ({ name, match: { kind: "exact" as const, value }, invert });

const matched = (match: Partial<MatchInput>): readonly MatchInput[] => callRoutes(route(match), SITE).map((one) => one.match);

describe("what calls can match", () => {
  it("is decided beforehand for what every call has: method, scheme and authority", () => {
    assert.deepEqual(matched({ headers: [exact(":method", "POST"), exact(":scheme", "http"), exact("x-who", "me")] }), [
      { ...ANY, headers: [exact("x-who", "me")] },
    ]);
    assert.deepEqual(matched({ headers: [exact(":method", "GET")] }), []);
    assert.deepEqual(matched({ headers: [exact(":method", "POST", true)] }), []);
    assert.deepEqual(matched({ headers: [exact(":method", "GET", true)] }), [ANY]);
    const authority = (kind: "prefix" | "regex", value: string) =>
      matched({ headers: [{ name: ":authority", match: { kind, value }, invert: false }] });
    assert.deepEqual(authority("prefix", "greeter.shop"), [ANY]);
    assert.deepEqual(authority("regex", "greeter\\..*:7070"), [ANY]);
    assert.deepEqual(authority("regex", "greeter"), []);
  });

  it("is nothing where a query or a claim is asked for, since clients would not look at those", () => {
    assert.deepEqual(matched({ queryParams: [{ name: "q", match: undefined }] }), []);
    const claim = { path: ["sub"], match: { kind: "exact" as const, value: "me" } };
    assert.deepEqual(matched({ claims: [{ ...claim, invert: false }] }), []);
    assert.deepEqual(matched({ claims: [{ ...claim, invert: true }] }), [ANY]);
  });

  it("says in a route of its own that an unwanted header may be missing", () => {
    const unwanted = exact("x-old", "1", true);
    const missing = { name: "x-old", match: undefined, invert: true };
    assert.deepEqual(matched({ headers: [exact("x-who", "me"), unwanted] }), [
      { ...ANY, headers: [exact("x-who", "me"), missing] },
      { ...ANY, headers: [exact("x-who", "me"), unwanted] },
    ]);
    assert.deepEqual(matched({ headers: [missing] }), [{ ...ANY, headers: [missing] }]);
    assert.equal(matched({ headers: Array.from({ length: 9 }, (_, index) => exact(`x-${index}`, "1", true)) }).length, 8);
  });
});

describe("what becomes of calls", () => {
  it("only what gRPC clients do themselves is said", () => {
    const [one] = callRoutes(route({}, { cors: undefined }), SITE);
    assert.ok(one?.action.kind === "route");
    assert.deepEqual(one.action.destinations, [
      { cluster: "a", weight: 0, request: NO_HEADER_CHANGES, response: NO_HEADER_CHANGES, hostRewrite: undefined },
    ]);
    assert.deepEqual([one.action.rewrite, one.action.mirrors, one.request, one.statPrefix], [undefined, [], NO_HEADER_CHANGES, ""]);
  });

  it("answers and redirects are aborts with their status", () => {
    const abort = (code: number) => ({ status: { kind: "http", code }, share: { numerator: 100, of: "hundred" } });
    const [answered] = callRoutes(route({}, { action: { kind: "directResponse", status: 403, body: undefined } }), SITE);
    assert.deepEqual(answered?.fault?.abort, abort(403));
    assert.ok(answered?.action.kind === "route");
    assert.equal(answered.action.destinations[0]?.cluster, SITE.cluster);
    const redirect = {
      kind: "redirect" as const,
      path: "",
      prefixRewrite: undefined,
      authority: "x",
      scheme: "",
      port: undefined,
      code: 307,
    };
    assert.deepEqual(callRoutes(route({}, { action: redirect }), SITE)[0]?.fault?.abort, abort(307));
  });

  it("an abort that aborts nothing is left out, a delay stays", () => {
    const delay = { ms: 5, share: { numerator: 1, of: "hundred" as const } };
    const abort = { status: { kind: "http" as const, code: 500 }, share: undefined };
    assert.equal(callRoutes(route({}, { fault: { delay: undefined, abort } }), SITE)[0]?.fault, undefined);
    assert.deepEqual(callRoutes(route({}, { fault: { delay, abort } }), SITE)[0]?.fault, { delay, abort: undefined });
  });
});
