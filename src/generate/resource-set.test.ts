import { describe, expect, it } from "vitest";
import type { Encoded } from "../wire/encoded.ts";
import { layered, sameResourceSet } from "./resource-set.ts";

const resource = (name: string): Encoded => ({ typeUrl: "", name, version: name, body: new Uint8Array() });
const mapOf = (...names: string[]): ReadonlyMap<string, Encoded> => new Map(names.map((name) => [name, resource(name)]));

describe("layered sets", () => {
  const base = mapOf("a", "b");
  const top = mapOf("c");

  it("are the base itself where nothing is added", () => {
    const set = { resources: base, failed: [] };
    expect(layered(set, { resources: new Map(), failed: [] })).toBe(set);
  });

  it("are equal to any map with the same members", () => {
    const failed = [{ name: "x", message: "y" }];
    const set = layered({ resources: base, failed }, { resources: top, failed: [] });
    expect(sameResourceSet(set, { resources: new Map([...base, ...top]), failed })).toBe(true);
    expect(sameResourceSet(set, layered({ resources: base, failed }, { resources: new Map(top), failed: [] }))).toBe(true);
    expect(sameResourceSet(set, layered({ resources: base, failed }, { resources: mapOf("c"), failed: [] }))).toBe(false);
    expect(sameResourceSet(set, layered({ resources: base, failed: [] }, { resources: top, failed: [] }))).toBe(false);
  });
});
