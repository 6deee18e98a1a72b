import { describe, expect, it } from "vitest";
import type { TextPattern } from "./text-pattern.ts";
import { tokenIdentity } from "./token-identity.ts";

const written = (pattern: TextPattern): string =>
  pattern.kind === "any" ? "*" : { exact: pattern.text, prefix: `${pattern.text}*`, suffix: `*${pattern.text}` }[pattern.kind];

describe("tokenIdentity", () => {
  const table: readonly [value: string, identity: [issuer: string, subject: string]][] = [
    ["*", ["*", "*"]],
    ["https://a.test/alice", ["https://a.test", "alice"]],
    ["https://a.test/*", ["https://a.test", "*"]],
    ["*/alice", ["*", "alice"]],
    ["*a.test/alice", ["*a.test", "alice"]],
    ["*lice", ["*", "*lice"]],
    ["https://a*", ["https:/", "a*"]],
    ["issuer*", ["issuer*", "*"]],
    ["issuer", ["issuer", ""]],
    ["https://a.test/al*", ["https://a.test", "al*"]],
  ];
  for (const [value, identity] of table) {
    it(`${value} is ${identity.join(" + ")}`, () => {
      const { issuer, subject } = tokenIdentity(value);
      expect([written(issuer), written(subject)]).toEqual(identity);
    });
  }
});
