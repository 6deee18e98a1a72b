import assert from "node:assert/strict";
import { isIP, isIPv6 } from "node:net";
import fc from "fast-check";
import { describe, it } from "vitest";
import { holds } from "../../test/support/holds.ts";
import {
  bracketed,
  canonicalAddress,
  cidrContains,
  cidrCovers,
  compareAddresses,
  formatCidr,
  formatIp,
  hostPort,
  ipFamily,
  parseCidr,
  parseIp,
} from "./address.ts";

describe("addresses", () => {
  const spellings: readonly [text: string, want: string][] = [
    ["10.0.0.1", "10.0.0.1"],
    ["2001:DB8:0:0:0:0:0:1", "2001:db8::1"],
    ["0:0:0:0:0:0:0:0", "::"],
    ["::1", "::1"],
    ["1::", "1::"],
    ["2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"],
    ["1:0:2:0:3:0:4:0", "1:0:2:0:3:0:4:0"],
    ["::ffff:a00:1", "::ffff:10.0.0.1"],
    ["fe80::1%eth0", "fe80::1"],
    ["web.example.com", "web.example.com"],
    ["not:an:address", "not:an:address"],
  ];
  for (const [text, want] of spellings) it(`${text} is written ${want}`, () => assert.equal(canonicalAddress(text), want));

  it("sets IPv6 addresses in brackets before a port, and nothing else", () => {
    assert.deepEqual(["10.0.0.1", "::1", "a.b", ""].map(bracketed), ["10.0.0.1", "[::1]", "a.b", ""]);
    assert.deepEqual([hostPort("::1", 80), hostPort("a.b", "80"), hostPort("", 80)], ["[::1]:80", "a.b:80", ":80"]);
  });

  it("are told from other texts as Node does", () => {
    const part = fc.oneof(
      fc.integer({ min: 0, max: 300 }).map(String),
      fc.constantFrom("", "0", "00", "01", "1e1", "+1", "-1", " 1", "1 ", "\u0661", "a", "::", "ffff", "%eth0", "1000000000000"),
    );
    const text = fc.tuple(fc.array(part, { maxLength: 6 }), fc.constantFrom(".", ":", "", "..")).map(([parts, by]) => parts.join(by));
    holds(
      fc.property(fc.oneof(text, fc.ipV4(), fc.ipV6(), fc.string()), (one) => assert.equal(ipFamily(one), isIP(one))),
      { numRuns: 2_000 },
    );
  });

  it("knows the family", () => {
    assert.deepEqual(["10.0.0.1", "::1", "10.0.0.0/8", "a.b", ""].map(ipFamily), [4, 6, 0, 0, 0]);
  });

  it("reads back what it writes", () => {
    holds(
      fc.property(fc.bigInt({ min: 0n, max: (1n << 128n) - 1n }), (value) => {
        const text = formatIp({ family: 6, value });
        assert.ok(isIPv6(text), text);
        assert.deepEqual(parseIp(text), { family: 6, value });
      }),
    );
    holds(fc.property(fc.ipV4(), (text) => assert.equal(formatIp(parseIp(text) ?? { family: 4, value: 0n }), text)));
    holds(fc.property(fc.ipV6(), (text) => assert.equal(canonicalAddress(canonicalAddress(text)), canonicalAddress(text))));
  });

  it("sorts by family, number, then text", () => {
    const texts = ["web", "::1", "10.0.0.10", "10.0.0.9", "api"];
    assert.deepEqual(texts.sort(compareAddresses), ["10.0.0.9", "10.0.0.10", "::1", "api", "web"]);
  });
});

describe("ranges", () => {
  const ranges: readonly [text: string, want: string | undefined][] = [
    ["10.1.2.3/8", "10.0.0.0/8"],
    ["10.1.2.3/32", "10.1.2.3"],
    ["10.1.2.3", "10.1.2.3"],
    ["0.0.0.0/0", "0.0.0.0/0"],
    ["2001:DB8::1/32", "2001:db8::/32"],
    ["10.0.0.0/33", undefined],
    ["10.0.0.0/-1", undefined],
    ["10.0.0.0/", undefined],
    ["10.0.0.0/8/8", undefined],
    ["web/8", undefined],
  ];
  for (const [text, want] of ranges) {
    it(`${text} is ${want ?? "no range"}`, () => {
      const cidr = parseCidr(text);
      assert.equal(cidr === undefined ? undefined : formatCidr(cidr), want);
    });
  }

  const inside: readonly [range: string, address: string, want: boolean][] = [
    ["10.0.0.0/8", "10.255.0.1", true],
    ["10.0.0.0/8", "11.0.0.1", false],
    ["0.0.0.0/0", "1.2.3.4", true],
    ["0.0.0.0/0", "::1", false],
    ["2001:2::/48", "2001:2::f", true],
    ["2001:2::/48", "2001:2:1::f", false],
  ];
  for (const [range, address, want] of inside) {
    it(`${range} ${want ? "holds" : "does not hold"} ${address}`, () => {
      const [cidr, ip] = [parseCidr(range), parseIp(address)];
      assert.ok(cidr !== undefined && ip !== undefined);
      assert.equal(cidrContains(cidr, ip), want);
    });
  }

  it("covers smaller ranges only", () => {
    const [wide, narrow] = [parseCidr("10.0.0.0/8"), parseCidr("10.1.0.0/16")];
    assert.ok(wide !== undefined && narrow !== undefined);
    assert.equal(cidrCovers(wide, narrow), true);
    assert.equal(cidrCovers(narrow, wide), false);
    assert.equal(cidrCovers(wide, wide), true);
  });
});
