import assert from "node:assert/strict";
import { loadAll } from "js-yaml";
import { describe, it } from "vitest";
import type { CustomResourceDefinition } from "../../src/config/crd/custom-resource-definition.ts";
import { istioctl } from "./cli-host.ts";

const namesOf = (items: readonly unknown[]): readonly string[] => items.map((item) => (item as CustomResourceDefinition).metadata.name);

describe("istioctl crds", () => {
  it("prints every definition as a document of its own, without references that kubectl does not follow", async () => {
    const { status, out } = await istioctl(["crds"]);
    assert.equal(status, 0);
    assert.doesNotMatch(out, /[&*]ref_/);
    const names = namesOf(loadAll(out));
    assert.equal(names.length, 15);
    assert.equal(new Set(names).size, 15);
  });

  it("prints those that are named, also as a List", async () => {
    const { out } = await istioctl(["crds", "vs", "Gateway", "-o", "json"]);
    const list = JSON.parse(out) as { readonly kind: string; readonly items: readonly unknown[] };
    assert.equal(list.kind, "List");
    assert.deepEqual(namesOf(list.items), ["virtualservices.networking.istio.io", "gateways.networking.istio.io"]);
  });

  it("does not know kinds of others", async () => {
    const { status, err } = await istioctl(["crds", "Pod"]);
    assert.equal(status, 2);
    assert.match(err, /there is no kind "Pod" among Istio's/);
  });
});
