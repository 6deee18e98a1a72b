import { describe, expect, it } from "vitest";
import type { Encoded } from "../wire/encoded.ts";
import { LayeredResources } from "./layered-resources.ts";
import { layered, sameResourceSet } from "./resource-set.ts";

const resource = (name: string): Encoded => ({ typeUrl: "", name, version: name, body: new Uint8Array() });
const mapOf = (...names: string[]): ReadonlyMap<string, Encoded> => new Map(names.map((name) => [name, resource(name)]));

describe("layered resources", () => {
  const base = mapOf("a", "b");
  const top = mapOf("c");
  const both = new LayeredResources(base, top);

  it("look like one map", () => {
    const flat = new Map([...base, ...top]);
    expect([...both]).toEqual([...flat]);
    expect([...both.keys()]).toEqual(["a", "b", "c"]);
    expect([...both.values()]).toEqual([...flat.values()]);
    expect(both.size).toBe(3);
    expect([both.get("a"), both.get("c"), both.get("d")]).toEqual([base.get("a"), top.get("c"), undefined]);
    expect([both.has("b"), both.has("c"), both.has("d")]).toEqual([true, true, false]);
    const seen: string[] = [];
    both.forEach((one, name) => void seen.push(`${name}=${one.name}`));
    expect(seen).toEqual(["a=a", "b=b", "c=c"]);
  });

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
