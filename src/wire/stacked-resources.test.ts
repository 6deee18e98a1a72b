import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { holds } from "../../test/support/holds.ts";
import type { Encoded, ResourceSet } from "./encoded.ts";
import { partsOf, StackedResources, stacked, unshared } from "./stacked-resources.ts";

const resource = (name: string, version = name): Encoded => ({ typeUrl: "", name, version, body: new Uint8Array() });
const mapOf = (...names: string[]): ResourceSet["resources"] => new Map(names.map((name) => [name, resource(name)]));

describe("stacked resources", () => {
  const [a, b] = [mapOf("a", "b"), mapOf("c")];

  it.each([
    ["a few maps", [a, b]],
    ["many maps", [a, b, mapOf("d"), mapOf("e"), mapOf("f"), mapOf("g")]],
  ])("make %s look like one", (_, maps) => {
    const stack = new StackedResources(maps);
    const flat = new Map(maps.flatMap((part) => [...part]));
    expect([...stack]).toEqual([...flat]);
    expect([...stack.keys()]).toEqual([...flat.keys()]);
    expect([...stack.values()]).toEqual([...flat.values()]);
    expect(stack.size).toBe(flat.size);
    for (const name of [...flat.keys(), "x"]) expect([stack.get(name), stack.has(name)]).toEqual([flat.get(name), flat.has(name)]);
    const seen: string[] = [];
    stack.forEach((one, name) => void seen.push(`${name}=${one.name}`));
    expect(seen).toEqual([...flat.keys()].map((name) => `${name}=${name}`));
  });

  it("have no stack and no empty map among their parts, and are the one map where there is no other", () => {
    const stack = stacked([stacked([a, b]), mapOf("d")]);
    expect(partsOf(stack).every((part) => part instanceof Map)).toBe(true);
    expect(partsOf(stack)).toHaveLength(3);
    expect(stacked([new Map(), a, new Map()])).toBe(a);
    expect(stacked([]).size).toBe(0);
  });

  it("differ at most in the parts that they do not share, wherever those stand", () => {
    const part = fc.record({ names: fc.uniqueArray(fc.constantFrom("1", "2", "3")), at: fc.nat(6), version: fc.constantFrom("x", "y") });
    const known = new Map<string, ResourceSet["resources"]>();
    const partOf = ({ names, at, version }: { names: string[]; at: number; version: string }): ResourceSet["resources"] => {
      const key = JSON.stringify([names, at, version]);
      const made = known.get(key) ?? new Map(names.map((name) => [`${at}.${name}`, resource(`${at}.${name}`, version)]));
      known.set(key, made);
      return made;
    };
    const maps = fc.uniqueArray(part, { selector: ({ at }) => at, maxLength: 7 }).map((parts) => stacked(parts.map(partOf)));
    const differences = (old: ResourceSet["resources"], now: ResourceSet["resources"]): readonly string[] =>
      [...new Set([...old.keys(), ...now.keys()])].filter((name) => old.get(name)?.version !== now.get(name)?.version).sort();
    holds(
      fc.property(maps, maps, (old, now) => {
        expect(differences(...unshared(old, now))).toEqual(differences(new Map(old), new Map(now)));
      }),
    );
  });
});
