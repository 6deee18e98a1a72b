import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { KINDS, kindOf } from "./index.ts";

const FACTS = join(import.meta.dirname, "../../../../shared/conformance/crds");

interface CrdFacts {
  readonly group: string;
  readonly kind: string;
  readonly plural: string;
  readonly singular: string;
  readonly shortNames: readonly string[];
  readonly scope: string;
  readonly versions: readonly { readonly name: string; readonly served: boolean }[];
}

describe("the table of kinds", () => {
  it("names every kind once", () => {
    expect(new Set(KINDS.map((def) => def.kind)).size).toBe(KINDS.length);
    expect(new Set(KINDS.map((def) => `${def.group}/${def.plural}`)).size).toBe(KINDS.length);
  });

  it("finds kinds by group and kind", () => {
    for (const def of KINDS) expect(kindOf(def.group, def.writtenKind ?? def.kind)).toBe(def);
    expect(kindOf("", "VirtualService")).toBeUndefined();
    expect(kindOf("gateway.networking.k8s.io", "Gateway")?.kind).toBe("KubernetesGateway");
  });

  for (const file of ["crds.json", "gateway-api-crds.json"]) {
    it.skipIf(!existsSync(join(FACTS, file)))(`agrees with ${file} of the corpus (skipped where ../shared is not there)`, () => {
      for (const facts of JSON.parse(readFileSync(join(FACTS, file), "utf8")) as readonly CrdFacts[]) {
        const def = kindOf(facts.group, facts.kind);
        expect(def, facts.kind).toMatchObject({
          plural: facts.plural,
          singular: facts.singular,
          shortNames: facts.shortNames,
          scope: facts.scope,
        });
        const served = facts.versions.filter((version) => version.served).map((version) => version.name);
        expect(def?.versions, facts.kind).toEqual(expect.arrayContaining(served));
      }
    });
  }
});
