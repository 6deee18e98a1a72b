import assert from "node:assert/strict";
import { it } from "vitest";
import { endpointEdit, type SceneShape, sceneFiles } from "../../bench/scene.ts";
import { sceneWorld } from "../../bench/scene-world.ts";
import { silentLog } from "../../src/base/log.ts";
import { nextTurn } from "../../src/base/slice.ts";
import { createProblemReport } from "../../src/serve/problem-report.ts";
import { manualClock } from "../support/manual-clock.ts";

const SHAPE: SceneShape = { services: 100, endpoints: 3, namespaces: 4, virtualServices: 20, destinationRules: 20, proxies: 4, classes: 2 };

it("what is wrong between objects is asked of those that a change may have concerned, not of all", async () => {
  const { world, put } = sceneWorld(SHAPE);
  const clock = manualClock();
  const looks = { over: 0 };
  const report = createProblemReport({
    world,
    store: { origin: () => undefined, problems: () => [] },
    clock,
    log: silentLog,
    looked: () => {
      looks.over += 1;
    },
  });
  /** How often objects were asked about in a look after a change. */
  const asked = async (change: string): Promise<number> => {
    const count = (): number => {
      const { runs = 0, hits = 0 } = world.engine.stats().queries["problems.ofObject"] ?? {};
      return runs + hits;
    };
    const [before, over] = [count(), looks.over];
    put(change);
    report.committed();
    clock.advance(2_000);
    while (looks.over === over) await nextTurn();
    world.engine.sweep();
    return count() - before;
  };
  const [, services = ""] = [...sceneFiles(SHAPE)].find(([file]) => file.endsWith("services.yaml")) ?? [];
  assert.ok((await asked(endpointEdit(0).text)) >= SHAPE.services, "at first all are asked");
  const { runs } = world.engine.stats().queries["problems.ofAll"] ?? {};
  assert.ok((await asked(endpointEdit(1).text)) < SHAPE.services, "those of other namespaces are not");
  assert.equal(world.engine.stats().queries["problems.ofAll"]?.runs, runs, "what is found is the same");
  assert.equal(await asked(endpointEdit(1).text), 0, "nothing changed");
  const more = services.slice(0, services.indexOf("\n---")).replaceAll(/\bsvc-\d+/g, "another");
  assert.notEqual(more, "");
  assert.ok((await asked(more)) >= SHAPE.services, "there is one more");
});
