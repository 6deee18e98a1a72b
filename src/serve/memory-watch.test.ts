import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { manualClock } from "../../test/support/manual-clock.ts";
import { silentLog } from "../base/log.ts";
import { followHeap, oldSpaceLimit } from "./live-heap.ts";
import { followMemoryLimit, watchMemory } from "./memory-watch.ts";

const MB = 1024 * 1024;

function setUp(limitBytes: number | undefined) {
  const clock = manualClock();
  const relieved: string[] = [];
  const reading = { residentBytes: 50 * MB, heapBytes: 10 * MB, collections: 0 };
  const watch = watchMemory({
    clock,
    log: silentLog,
    limitBytes: () => limitBytes,
    residentBytes: () => reading.residentBytes,
    heap: {
      liveBytes: () => reading.heapBytes,
      limitBytes: () => 100 * MB,
      collect() {
        reading.collections += 1;
      },
      stop() {},
    },
    relieve: (pressure) => relieved.push(pressure),
  });
  const at = (change: Partial<typeof reading>): string => {
    Object.assign(reading, change);
    clock.advance(250);
    return watch.state().pressure;
  };
  return { watch, relieved, reading, at };
}

describe("the watch on memory", () => {
  it("begins to relieve near the limit of the process, goes on while it lasts, and stops well below it", () => {
    const { relieved, at } = setUp(100 * MB);
    assert.equal(at({ residentBytes: 79 * MB }), "none");
    assert.equal(at({ residentBytes: 81 * MB }), "tight");
    assert.equal(at({ residentBytes: 93 * MB }), "critical");
    assert.equal(at({ residentBytes: 86 * MB }), "critical");
    assert.equal(at({ residentBytes: 84 * MB }), "tight");
    assert.equal(at({ residentBytes: 71 * MB }), "tight");
    assert.equal(at({ residentBytes: 69 * MB }), "none");
    assert.equal(at({}), "none");
    assert.deepEqual(relieved, ["tight", "critical", "critical", "tight", "tight", "none"]);
  });

  it("minds the limit of the heap too, also where nothing limits the process", () => {
    const { watch, at } = setUp(undefined);
    assert.equal(at({ residentBytes: 4_000 * MB }), "none");
    assert.equal(at({ heapBytes: 63 * MB }), "none");
    assert.equal(at({ heapBytes: 65 * MB }), "tight");
    assert.equal(at({ heapBytes: 76 * MB }), "critical", "well before V8 gives up");
    assert.deepEqual(watch.check(), {
      name: "memory",
      ok: false,
      blocks: false,
      detail:
        "95 % used: memory is about to run out: no proxies are let in, and those that do not read are cut; give this process more, or run more of them",
    });
  });

  it("collects garbage while nobody is let in, but not all the time", () => {
    const { reading, at } = setUp(100 * MB);
    for (let turn = 0; turn < 40; turn += 1) at({ residentBytes: 95 * MB });
    assert.equal(reading.collections, 2);
    for (let turn = 0; turn < 80; turn += 1) at({ residentBytes: 75 * MB });
    assert.equal(reading.collections, 3);
    for (let turn = 0; turn < 80; turn += 1) at({ residentBytes: 5 * MB });
    assert.equal(reading.collections, 3);
  });

  it("takes the limit that is set, else that of the cgroup, if there is one", () => {
    let set = 5;
    const limit = followMemoryLimit(manualClock(), () => set);
    assert.equal(limit(), 5);
    set = 0;
    const found = limit();
    assert.ok(found === undefined || found > MB);
    set = 6;
    assert.equal(limit(), 6);
  });
});

describe("the live heap", () => {
  it("is what is left after a full collection", () => {
    const heap = followHeap([]);
    heap.collect();
    const before = heap.liveBytes();
    const kept = Array.from({ length: 100_000 }, (_, index) => ({ index }));
    heap.collect();
    assert.ok(heap.liveBytes() - before > kept.length * 8, `${heap.liveBytes() - before} bytes`);
    assert.ok(heap.liveBytes() < heap.limitBytes());
    heap.stop();
  });

  it("has the limit that the process was started with", () => {
    assert.equal(oldSpaceLimit(["--max-old-space-size=64", "--no-warnings", "--max_old_space_size=128"]), 128 * MB);
    assert.equal(oldSpaceLimit(["--max-old-space-size-percentage=50"]), undefined);
  });
});
