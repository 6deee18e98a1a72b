import { describe, expect, it } from "vitest";
import { withTrustDomainAliases } from "./trust-domains.ts";

const DOMAINS = ["new.test", "old.test"];

describe("withTrustDomainAliases", () => {
  const table: readonly [identity: string, ...expected: string[]][] = [
    ["new.test/ns/shop/sa/web", "new.test/ns/shop/sa/web", "old.test/ns/shop/sa/web"],
    ["old.test/ns/shop/sa/web", "new.test/ns/shop/sa/web", "old.test/ns/shop/sa/web"],
    ["cluster.local/ns/shop/sa/web", "new.test/ns/shop/sa/web", "old.test/ns/shop/sa/web"],
    ["*ew.test/ns/shop/sa/web", "*ew.test/ns/shop/sa/web", "old.test/ns/shop/sa/web"],
    ["*.test/ns/shop/sa/web", "*.test/ns/shop/sa/web"],
    ["new*/ns/shop/sa/web", "new.test/ns/shop/sa/web", "old.test/ns/shop/sa/web"],
    ["other.test/ns/shop/sa/web", "other.test/ns/shop/sa/web"],
    ["*/ns/shop/sa/web", "*/ns/shop/sa/web"],
    ["new.test/*", "new.test/*"],
    ["*", "*"],
  ];
  for (const [identity, ...expected] of table) {
    it(`${identity} means ${expected.join(" and ")}`, () => expect(withTrustDomainAliases([identity], DOMAINS)).toEqual(expected));
  }

  it("takes an alias that is a pattern at its word", () =>
    expect(withTrustDomainAliases(["old.test/ns/shop/sa/web"], ["new.test", "*.test"])).toEqual([
      "new.test/ns/shop/sa/web",
      "*.test/ns/shop/sa/web",
    ]));
});
