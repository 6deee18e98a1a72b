import { expect, it } from "vitest";
import { manualClock } from "../../test/support/manual-clock.ts";
import { createAllowance } from "./allowance.ts";

const taken = (count: number, take: (index: number) => boolean): number =>
  Array.from({ length: count }, (_, i) => take(i)).filter(Boolean).length;

it("gives each so much at once and so much a second, and no more to all together", () => {
  const clock = manualClock();
  const allowance = createAllowance({ clock, each: { burst: 3, perSecond: 1 }, all: { burst: 10, perSecond: 2 } });
  expect(taken(9, () => allowance.take("one"))).toBe(3);
  expect(taken(9, () => allowance.take("two"))).toBe(3);
  clock.advance(1_000);
  expect(taken(9, () => allowance.take("one"))).toBe(1);
  clock.advance(60_000);
  expect(taken(9, () => allowance.take("one"))).toBe(3);
  expect(taken(50, (i) => allowance.take(`name ${i}`))).toBe(7);
});

it("remembers no more names than it can, and forgets those that were not seen for longest", () => {
  const clock = manualClock();
  const allowance = createAllowance({ clock, each: { burst: 1, perSecond: 0 }, all: { burst: 1e9, perSecond: 0 } });
  allowance.take("gone");
  allowance.take("stays");
  for (let i = 0; i < 9_999; i++) {
    allowance.take(`name ${i}`);
    if (i === 9_000) allowance.take("stays");
  }
  expect([allowance.take("stays"), allowance.take("gone")]).toEqual([false, true]);
});
