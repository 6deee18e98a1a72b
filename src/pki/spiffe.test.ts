import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { holds } from "../../test/support/holds.ts";
import { formatSpiffeId, identityFault, isTrustDomain, parseSpiffeId } from "./spiffe.ts";

describe("SPIFFE ids", () => {
  it("are read in Istio's form", () => {
    expect(parseSpiffeId("spiffe://cluster.local/ns/shop/sa/cart")).toEqual({
      trustDomain: "cluster.local",
      namespace: "shop",
      serviceAccount: "cart",
    });
  });

  it.for([
    "",
    "spiffe://",
    "spiffe://cluster.local",
    "SPIFFE://cluster.local/ns/shop/sa/cart",
    "https://cluster.local/ns/shop/sa/cart",
    "spiffe://Cluster.local/ns/shop/sa/cart",
    "spiffe:///ns/shop/sa/cart",
    "spiffe://cluster.local/ns/shop/sa/cart/",
    "spiffe://cluster.local/ns//sa/cart",
    "spiffe://cluster.local/ns/../sa/cart",
    "spiffe://cluster.local/ns/shop/sa/.",
    "spiffe://cluster.local/ns/shop/sa/cart?x",
    "spiffe://cluster.local/ns/shop/sa/cart#x",
    "spiffe://cluster.local/ns/sh%6fp/sa/cart",
    "spiffe://user@cluster.local/ns/shop/sa/cart",
    "spiffe://cluster.local:80/ns/shop/sa/cart",
    "spiffe://cluster.local/ns/shop/sa/cart\n",
    `spiffe://cluster.local/ns/shop/sa/${"a".repeat(2_048)}`,
    `spiffe://${"a".repeat(256)}/ns/shop/sa/cart`,
  ])("are not %s", (text) => {
    expect(parseSpiffeId(text)).toBeUndefined();
  });

  it("have one spelling: what is read is written the same, and different words never meet", () => {
    const word = fc.string({ unit: fc.constantFrom("a", "Z", "0", ".", "-", "_", "/", "%", "~"), maxLength: 6 });
    holds(
      fc.property(word, word, word, (trustDomain, namespace, serviceAccount) => {
        const identity = { trustDomain, namespace, serviceAccount };
        const read = parseSpiffeId(formatSpiffeId(identity));
        expect(read).toEqual(identityFault(identity) === undefined ? identity : undefined);
      }),
    );
  });

  it("have a trust domain of lower-case letters, digits, dots, dashes and underscores", () => {
    expect(["cluster.local", "td_1", "a-b"].every(isTrustDomain)).toBe(true);
    expect(["", "A", "a b", "a/b", "ä", "a".repeat(256)].some(isTrustDomain)).toBe(false);
  });
});
