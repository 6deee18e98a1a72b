import fc from "fast-check";
import { RE2JS } from "re2js";
import { describe, expect, it } from "vitest";
import { holds } from "../../../../test/support/holds.ts";
import type { Principal } from "../../../gen/envoy/config/rbac/v3/rbac_pb.js";
import { sourcePrincipal } from "./principals.ts";
import type { PrincipalAttribute } from "./rbac-input.ts";

/** Whether a peer with this identity is let in, as Envoy would judge: the part of RBAC that these tests need. */
function admits(principal: Principal, identity: string): boolean {
  const { identifier } = principal;
  switch (identifier.case) {
    case "andIds":
      return identifier.value.ids.every((id) => admits(id, identity));
    case "orIds":
      return identifier.value.ids.some((id) => admits(id, identity));
    case "notId":
      return !admits(identifier.value, identity);
    case "any":
      return true;
    case "authenticated": {
      const match = identifier.value.principalName?.matchPattern;
      if (match?.case === "exact") return identity === match.value;
      if (match?.case === "prefix") return identity.startsWith(match.value);
      return match?.case === "safeRegex" && RE2JS.compile(match.value.regex).matches(identity);
    }
    default:
      throw new Error(`not a peer identity: ${identifier.case}`);
  }
}

const peer = (kind: PrincipalAttribute["kind"], values: readonly string[], notValues: readonly string[] = []): Principal =>
  sourcePrincipal([{ attribute: { kind } as PrincipalAttribute, values, notValues }]);

const name = fc.string({ unit: fc.constantFrom(..."ab.+-[("), minLength: 1, maxLength: 5 });
const spiffe = (namespace: string, account: string, domain = "td.test"): string => `spiffe://${domain}/ns/${namespace}/sa/${account}`;

describe("sourcePrincipal", () => {
  it("takes just the service account that is named, whatever characters it has", () => {
    holds(
      fc.property(fc.tuple(name, name, name, name), ([namespace, account, otherNamespace, otherAccount]) => {
        const wanted = peer("serviceAccount", [`${namespace}/${account}`]);
        expect(admits(wanted, spiffe(namespace, account))).toBe(true);
        expect(admits(wanted, spiffe(otherNamespace, otherAccount))).toBe(namespace === otherNamespace && account === otherAccount);
      }),
      { numRuns: 1_000 },
    );
  });

  it("takes just the namespace that is named", () => {
    holds(
      fc.property(name, name, (namespace, other) => {
        expect(admits(peer("namespace", [namespace]), spiffe(other, "x"))).toBe(namespace === other);
      }),
      { numRuns: 1_000 },
    );
  });

  it("takes just the identity that ends as written", () => {
    holds(
      fc.property(name, name, (account, other) => {
        expect(admits(peer("principal", [`*/sa/${account}`]), spiffe("shop", other))).toBe(account === other);
      }),
      { numRuns: 1_000 },
    );
  });

  const table: readonly [title: string, principal: Principal, identity: string, want: boolean][] = [
    ["a whole identity", peer("principal", ["td.test/ns/shop/sa/web"]), spiffe("shop", "web"), true],
    ["no longer identity", peer("principal", ["td.test/ns/shop/sa/web"]), spiffe("shop", "webmaster"), false],
    ["identities of a prefix", peer("principal", ["td.test/ns/shop/*"]), spiffe("shop", "web"), true],
    ["any peer with an identity", peer("principal", ["*"]), spiffe("shop", "web"), true],
    ["no peer without one", peer("principal", ["*"]), "", false],
    ["nobody who is excluded", peer("principal", ["*"], ["td.test/ns/shop/sa/web"]), spiffe("shop", "web"), false],
    ["namespaces of a prefix", peer("namespace", ["ops-*"]), spiffe("ops-eu", "web"), true],
    ["peers of a trust domain", peer("trustDomain", ["td.test"]), spiffe("shop", "web"), true],
    ["peers of no longer trust domain", peer("trustDomain", ["td.test"]), spiffe("shop", "web", "td.tests"), false],
    ["a suffix of the trust domain, not of the path", peer("trustDomain", ["*.test"]), "spiffe://evil/a.test/ns/shop/sa/web", false],
  ];
  for (const [title, principal, identity, want] of table) it(`takes ${title}`, () => expect(admits(principal, identity)).toBe(want));
});
