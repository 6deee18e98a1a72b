import { describe, expect, it } from "vitest";
import { usableCiphers, usableCurves } from "./tls-parameters.ts";

describe("usableCiphers", () => {
  const table: readonly [list: readonly string[], usable: readonly string[]][] = [
    [
      ["AES128-SHA", "AES256-SHA", "AES128-SHA"],
      ["AES128-SHA", "AES256-SHA"],
    ],
    [["BAD", "AES128-SHA", "", "aes256-sha"], ["AES128-SHA"]],
    [["BAD"], []],
    [
      ["ALL", "-AES128-SHA"],
      ["ALL", "-AES128-SHA"],
    ],
    [["[AES128-SHA|AES256-SHA]", "[AES128-SHA|BAD]", "[AES128-SHA"], ["[AES128-SHA|AES256-SHA]"]],
    [["-AES128-SHA"], []],
    [["+AES128-SHA"], []],
    [["AES128-SHA", "-AES128-SHA"], []],
    [["!ALL", "AES128-SHA"], []],
  ];
  for (const [list, usable] of table)
    it(`leaves ${JSON.stringify(usable)} of ${JSON.stringify(list)}`, () => expect(usableCiphers(list)).toEqual(usable));
});

describe("usableCurves", () => {
  it("leaves curves that Envoy's TLS library knows, each once", () =>
    expect(usableCurves(["P-256", "P-224", "X25519", "P-256", "X25519Kyber768Draft00"])).toEqual(["P-256", "X25519"]));
});
