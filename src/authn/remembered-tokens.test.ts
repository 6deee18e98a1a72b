import { expect, it } from "vitest";
import type { SignedToken } from "./json-web-token.ts";
import { RememberedTokens } from "./remembered-tokens.ts";

const token = (): SignedToken => ({
  algorithm: "ES256",
  keyId: undefined,
  claims: {},
  signed: Buffer.alloc(0),
  signature: Buffer.alloc(0),
});

it("keeps tokens up to some megabytes, and lets the oldest go first", () => {
  const remembered = new RememberedTokens();
  const header = (index: number): string => `Bearer ${String(index).padStart(16_000, "x")}`;
  const first = token();
  remembered.add(header(0), first);
  remembered.add(header(0), token());
  expect(remembered.get(header(0))).toBe(first);
  for (let index = 1; index < 1_000; index++) remembered.add(header(index), token());
  expect(remembered.get(header(0))).toBeUndefined();
  const kept = Array.from({ length: 1_000 }, (_, index) => remembered.get(header(index)) !== undefined);
  expect(kept.lastIndexOf(false)).toBeLessThan(kept.indexOf(true));
  expect(kept.filter(Boolean).length).toBe(Math.floor((8 * 1024 * 1024) / header(0).length));
});
