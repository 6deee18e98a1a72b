import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { SendBudget } from "./send-budget.ts";

function setUp() {
  const budget = new SendBudget({ totalBytes: 400, windowBytes: 100, slowMs: 1_000 });
  const woken: string[] = [];
  const waiters = new Map<string, { wake(): void }>();
  const waiter = (name: string) => {
    const known = waiters.get(name) ?? { wake: () => void woken.push(name) };
    waiters.set(name, known);
    return known;
  };
  return { budget, woken, waiter };
}

describe("the budget of unsent bytes", () => {
  it("lets streams take turns, in the order they came", () => {
    const { budget, woken, waiter } = setUp();
    const first = { bytes: 60, since: 0 };
    assert.ok(budget.take(first, "known", waiter("a")));
    assert.ok(!budget.take({ bytes: 60, since: 0 }, "known", waiter("b")));
    assert.ok(!budget.take({ bytes: 60, since: 0 }, "known", waiter("c")));
    budget.give(first);
    assert.deepEqual(woken, ["b"], "both do not fit");
    const second = { bytes: 60, since: 0 };
    assert.ok(budget.take(second, "known", waiter("b")));
    budget.give(second);
    assert.deepEqual(woken, ["b", "c"]);
    assert.equal(budget.used, 0);
  });

  it("lets small responses pass a large one, but not for ever", () => {
    const { budget, woken, waiter } = setUp();
    let moving = { bytes: 40, since: 0 };
    assert.ok(budget.take(moving, "known", waiter("small")));
    assert.ok(!budget.take({ bytes: 70, since: 0 }, "known", waiter("large")));
    for (const since of [300, 600, 900]) {
      const next = { bytes: 20, since };
      assert.ok(budget.take(next, "known", waiter("small")), `at ${since}`);
      budget.give(moving);
      moving = next;
    }
    assert.deepEqual(woken, []);
    assert.ok(!budget.take({ bytes: 20, since: 1_000 }, "known", waiter("small")), "it is the large one's turn");
    budget.give(moving);
    assert.deepEqual(woken, ["large"]);
    assert.ok(!budget.take({ bytes: 20, since: 1_100 }, "known", waiter("small")));
    assert.ok(budget.take({ bytes: 70, since: 1_200 }, "known", waiter("large")));
  });

  it("is contended when somebody waits for what does not move, not when all of it moves", () => {
    const { budget, waiter } = setUp();
    assert.ok(budget.take({ bytes: 75, since: 0 }, "known", waiter("a")));
    assert.ok(!budget.take({ bytes: 75, since: 0 }, "known", waiter("b")));
    assert.ok(!budget.contended, "a window is full at any large push");
    budget.demote(1_000);
    assert.ok(budget.take({ bytes: 75, since: 1_000 }, "known", waiter("b")));
    assert.ok(!budget.take({ bytes: 75, since: 1_000 }, "known", waiter("c")));
    budget.demote(2_000);
    assert.ok(budget.contended, "150 of 400 are stuck");
  });

  it("does not wait for one who has nothing to send any more", () => {
    const { budget, waiter } = setUp();
    assert.ok(budget.take({ bytes: 40, since: 0 }, "known", waiter("a")));
    assert.ok(!budget.take({ bytes: 70, since: 0 }, "known", waiter("b")));
    budget.leave(waiter("b"));
    assert.ok(budget.take({ bytes: 20, since: 5_000 }, "known", waiter("c")));
  });

  it("passes the room on that one was promised who has nothing to send any more", () => {
    const { budget, woken, waiter } = setUp();
    const first = { bytes: 60, since: 0 };
    assert.ok(budget.take(first, "known", waiter("a")));
    assert.ok(!budget.take({ bytes: 60, since: 0 }, "known", waiter("b")));
    assert.ok(!budget.take({ bytes: 60, since: 0 }, "known", waiter("c")));
    budget.give(first);
    assert.deepEqual(woken, ["b"]);
    budget.leave(waiter("b"));
    assert.deepEqual(woken, ["b", "c"]);
  });

  it("tells who waits and has not been told of room; to ask for room takes none", () => {
    const { budget, woken, waiter } = setUp();
    const first = { bytes: 60, since: 0 };
    assert.ok(budget.admits(first, "known", waiter("a")));
    assert.equal(budget.used, 0);
    assert.ok(budget.take(first, "known", waiter("a")));
    assert.ok(!budget.admits({ bytes: 60, since: 0 }, "known", waiter("b")));
    assert.ok(budget.isWaiting(waiter("b")));
    assert.ok(!budget.isWaiting(waiter("a")));
    budget.give(first);
    assert.deepEqual(woken, ["b"]);
    assert.ok(!budget.isWaiting(waiter("b")));
    assert.ok(budget.take({ bytes: 60, since: 0 }, "known", waiter("b")));
    assert.ok(!budget.isWaiting(waiter("b")));
  });

  it("can be cut, and wakes those who wait when it is whole again", () => {
    const { budget, woken, waiter } = setUp();
    budget.scale = 0.25;
    assert.ok(budget.take({ bytes: 10, since: 0 }, "urgent", waiter("a")));
    assert.ok(!budget.take({ bytes: 20, since: 0 }, "urgent", waiter("b")));
    assert.deepEqual(woken, []);
    budget.scale = 1;
    assert.deepEqual(woken, ["b"]);
  });

  it("keeps a quarter for urgent types, which go first", () => {
    const { budget, woken, waiter } = setUp();
    const large = { bytes: 75, since: 0 };
    assert.ok(budget.take(large, "known", waiter("a")));
    assert.ok(!budget.take({ bytes: 10, since: 0 }, "known", waiter("b")));
    assert.ok(budget.take({ bytes: 20, since: 0 }, "urgent", waiter("c")));
    assert.ok(!budget.take({ bytes: 20, since: 0 }, "urgent", waiter("d")));
    budget.give(large);
    assert.deepEqual(woken, ["d", "b"]);
  });

  it("does not let proxies that are known wait for strangers", () => {
    const { budget, waiter } = setUp();
    assert.ok(budget.take({ bytes: 50, since: 0 }, "new", waiter("a")));
    assert.ok(!budget.take({ bytes: 10, since: 0 }, "new", waiter("b")));
    assert.ok(budget.take({ bytes: 25, since: 0 }, "known", waiter("c")));
  });

  it("lets a response larger than everything go alone", () => {
    const { budget, waiter } = setUp();
    assert.ok(budget.take({ bytes: 5_000, since: 0 }, "known", waiter("a")));
    assert.ok(!budget.take({ bytes: 1, since: 0 }, "known", waiter("b")));
  });

  it("does not let those who read wait for those who do not, up to the total", () => {
    const { budget, woken, waiter } = setUp();
    for (let turn = 0; turn < 3; turn += 1) {
      assert.ok(budget.take({ bytes: 75, since: turn * 1_000 }, "known", waiter(`slow ${turn}`)));
      assert.ok(!budget.take({ bytes: 75, since: turn * 1_000 }, "known", waiter("reader")));
      budget.demote((turn + 1) * 1_000);
      const taken = { bytes: 75, since: (turn + 1) * 1_000 };
      if (turn === 2) continue;
      assert.ok(budget.take(taken, "known", waiter("reader")));
      budget.give(taken);
    }
    assert.deepEqual(woken, ["reader", "reader", "reader"]);
    assert.ok(budget.take({ bytes: 75, since: 3_000 }, "known", waiter("reader")));
    budget.demote(4_000);
    assert.ok(!budget.take({ bytes: 75, since: 4_000 }, "known", waiter("reader")), "the total is used up");
    assert.ok(budget.contended);
  });
});
