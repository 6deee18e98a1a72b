import { describe, expect, it } from "vitest";
import type { TextPattern } from "./text-pattern.ts";
import { tokenIdentities } from "./token-identity.ts";

const written = (pattern: TextPattern): string =>
  pattern.kind === "any" ? "*" : { exact: pattern.text, prefix: `${pattern.text}*`, suffix: `*${pattern.text}` }[pattern.kind];

describe("tokenIdentities", () => {
  const table: readonly [value: string, ...identities: [issuer: string, subject: string][]][] = [
    ["*", ["*", "*"]],
    ["https://a.test/alice", ["https://a.test", "alice"]],
    ["https://a.test/*", ["https://a.test", "*"]],
    ["*/alice", ["*", "alice"]],
    ["*a.test/alice", ["*a.test", "alice"]],
    ["*lice", ["*", "*lice"]],
    ["https://a*", ["https://a*", "*"]],
    ["issuer*", ["issuer*", "*"]],
    ["issuer", ["issuer", ""]],
    ["https://a.test/al*", ["https://a.test/al*", "*"], ["https://a.test", "al*"]],
  ];
  for (const [value, ...identities] of table) {
    it(`${value} is ${identities.map(([issuer, subject]) => `${issuer} + ${subject}`).join(" or ")}`, () =>
      expect(tokenIdentities(value).map(({ issuer, subject }) => [written(issuer), written(subject)])).toEqual(identities));
  }
});
