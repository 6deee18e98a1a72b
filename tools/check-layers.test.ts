import { expect, it } from "vitest";
import { checkLayers } from "./check-layers.ts";

it("every import follows tools/layers.json", () => {
  expect(checkLayers(process.cwd())).toEqual([]);
});
