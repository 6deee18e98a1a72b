import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { compareSpecificity, hostsOverlap, matchesHost, mostSpecificMatch, parseServiceHost, resolveShortName } from "./hostname.ts";

describe("matchesHost", () => {
  const table: readonly [pattern: string, host: string, want: boolean][] = [
    ["a.example.com", "a.example.com", true],
    ["a.example.com", "b.example.com", false],
    ["*.example.com", "a.example.com", true],
    ["*.example.com", "a.b.example.com", true],
    ["*.example.com", "example.com", false],
    ["*.example.com", "badexample.com", false],
    ["*.example.com", ".example.com", false],
    ["*.example.com", "*.example.com", true],
    ["*.example.com", "*.b.example.com", true],
    ["*.b.example.com", "*.example.com", false],
    ["*", "a", true],
    ["*", "*.example.com", true],
    ["*.example.com", "*", false],
    ["a.example.com", "*.example.com", false],
  ];
  for (const [pattern, host, want] of table) {
    it(`${pattern} ${want ? "takes" : "leaves"} ${host}`, () => assert.equal(matchesHost(pattern, host), want));
  }

  it("overlap looks both ways", () => {
    assert.equal(hostsOverlap("a.example.com", "*.example.com"), true);
    assert.equal(hostsOverlap("*.example.com", "a.example.com"), true);
    assert.equal(hostsOverlap("*.example.com", "*.example.org"), false);
  });
});

describe("specificity", () => {
  it("sorts exact names first, then longer wildcards", () => {
    const hosts = ["*", "*.com", "b.com", "*.a.com", "a.com"];
    assert.deepEqual(hosts.sort(compareSpecificity), ["a.com", "b.com", "*.a.com", "*.com", "*"]);
  });

  it("chooses the most specific host that matches", () => {
    const hosts = ["*", "*.com", "*.a.com", "x.a.com"];
    assert.equal(mostSpecificMatch("x.a.com", hosts), "x.a.com");
    assert.equal(mostSpecificMatch("y.a.com", hosts), "*.a.com");
    assert.equal(mostSpecificMatch("y.b.org", hosts), "*");
    assert.equal(mostSpecificMatch("y.b.org", ["*.com"]), undefined);
  });
});

describe("resolveShortName", () => {
  const table: readonly [host: string, want: string][] = [
    ["web", "web.shop.svc.cluster.local"],
    ["web.bank", "web.bank"],
    ["api.example.com", "api.example.com"],
    ["*", "*"],
    ["*.com", "*.com"],
    ["10.0.0.1", "10.0.0.1"],
    ["::1", "::1"],
    ["", ""],
  ];
  for (const [host, want] of table)
    it(`${host || "(empty)"} is ${want || "(empty)"}`, () => assert.equal(resolveShortName(host, "shop", "cluster.local"), want));
});

describe("parseServiceHost", () => {
  const table: readonly [host: string, want: { name: string; namespace: string } | undefined][] = [
    ["web.shop.svc.cluster.local", { name: "web", namespace: "shop" }],
    ["pod.web.shop.svc.cluster.local", undefined],
    ["*.shop.svc.cluster.local", undefined],
    ["shop.svc.cluster.local", undefined],
    ["web.shop.svc.other.local", undefined],
  ];
  for (const [host, want] of table) it(host, () => assert.deepEqual(parseServiceHost(host, "cluster.local"), want));
});
