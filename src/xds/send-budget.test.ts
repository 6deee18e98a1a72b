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
    assert.deepEqual(woken, ["b", "c"]);
    assert.equal(budget.used, 0);
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
    }
    assert.deepEqual(woken, ["reader", "reader", "reader"]);
    assert.ok(budget.take({ bytes: 75, since: 3_000 }, "known", waiter("reader")));
    budget.demote(4_000);
    assert.ok(!budget.take({ bytes: 75, since: 4_000 }, "known", waiter("reader")), "the total is used up");
    assert.ok(budget.contended);
  });
});
