import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { nearestWord } from "./nearest-word.ts";

describe("nearestWord", () => {
  const words = ["Gateway", "ServiceEntry", "Sidecar", "v"];
  const table: readonly [typed: string, want: string | undefined][] = [
    ["Gateway", "Gateway"],
    ["Gatway", "Gateway"],
    ["Gatewway", "Gateway"],
    ["Gatwey", "Gateway"],
    ["ServceEntr", "ServiceEntry"],
    ["ServceEnt", undefined],
    ["Sidec", undefined],
    ["x", "v"],
    ["xy", undefined],
    ["", "v"],
    ["Gateway".repeat(1_000_000), undefined],
  ];
  for (const [typed, want] of table) it(JSON.stringify(typed.slice(0, 20)), () => assert.equal(nearestWord(typed, words), want));

  it("knows none among none", () => assert.equal(nearestWord("a", []), undefined));
});
