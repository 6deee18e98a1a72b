import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { sharingClasses } from "./sharing-classes.ts";
import { clusterOf, dumpOf, setOf, testView } from "./stream-fixture.ts";

describe("sharingClasses", () => {
  const common = clusterOf("common");
  const east = setOf(common, clusterOf("east"));
  const west = setOf(common, clusterOf("west"));
  const pod = (name: string, region: string) =>
    testView({ id: `sidecar~10.0.0.1~${name}.shop~x`, name, locality: { region, zone: "", subzone: "" } });

  it("counts sets that are the same object as one class, and resources once", () => {
    const [type] = sharingClasses([
      dumpOf(pod("a", "east"), [], east),
      dumpOf(pod("b", "east"), [], east),
      dumpOf(pod("c", "west"), [], west),
    ]);
    assert.equal(type?.type, "CDS");
    assert.equal(type?.streams, 3);
    assert.equal(type?.resources, 3);
    assert.deepEqual(
      type?.classes.map(({ streams, proxies }) => [streams, proxies]),
      [
        [2, ["a.shop", "b.shop"]],
        [1, ["c.shop"]],
      ],
    );
  });

  it("names the attribute that split them and not those that vary within a class", () => {
    const [type] = sharingClasses([
      dumpOf(pod("a", "east"), [], east),
      dumpOf({ ...pod("b", "east"), addresses: ["10.0.0.2"] }, [], east),
      dumpOf({ ...pod("c", "west"), addresses: ["10.0.0.3"] }, [], west),
    ]);
    assert.deepEqual(type?.splitBy, ["locality"]);
  });

  it("has nothing to explain where all share one set", () => {
    assert.deepEqual([...sharingClasses([dumpOf(pod("a", "east"), [], east), dumpOf(pod("b", "west"), [], east)])][0]?.splitBy, []);
  });
});
