import { describe, expect, it } from "vitest";
import { isOn, parseBool } from "./go-bool.ts";

describe("truth values", () => {
  it.for([
    [["1", "t", "T", "true", "TRUE", "True"], true],
    [["0", "f", "F", "false", "FALSE", "False"], false],
    [["", "yes", "on", "tRUE", " true", "2"], undefined],
  ] as const)("%j are %s", ([texts, value]) => {
    for (const text of texts) {
      expect(parseBool(text), text).toBe(value);
      expect(isOn(text), text).toBe(value === true);
    }
  });
});
