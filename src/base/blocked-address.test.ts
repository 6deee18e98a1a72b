import { describe, expect, it } from "vitest";
import { parseCidr } from "./address.ts";
import { blockedUnder } from "./blocked-address.ts";

const ranges = (...texts: readonly string[]) => texts.flatMap((text) => parseCidr(text) ?? []);

describe("rules about addresses", () => {
  const isBlocked = blockedUnder({ allowed: ranges("127.0.0.0/8", "10.0.0.0/8"), blocked: ranges("10.1.0.0/16") });
  const table: readonly [address: string, blocked: boolean][] = [
    ["127.0.0.1", false],
    ["::ffff:127.0.0.1", false],
    ["::1", true],
    ["169.254.169.254", true],
    ["10.2.0.1", false],
    ["10.1.0.1", true],
    ["::ffff:10.1.0.1", true],
    ["192.0.2.1", false],
    ["localhost", true],
  ];
  for (const [address, blocked] of table) it(`${blocked ? "block" : "allow"} ${address}`, () => expect(isBlocked(address)).toBe(blocked));
});
