import { expect, it } from "vitest";
import { manualClock } from "../../test/support/manual-clock.ts";
import { verificationPlace } from "./verification-place.ts";

it("requests are verified elsewhere, and here for a while after that took long", async () => {
  const clock = manualClock();
  const place = verificationPlace(clock);
  const where = (tookMs: number): Promise<string> =>
    place(async (at) => {
      clock.advance(tookMs);
      return at;
    });
  expect([await where(1), await where(1), await where(9)]).toEqual(["elsewhere", "elsewhere", "elsewhere"]);
  expect([await where(50), await where(50)]).toEqual(["here", "here"]);
  clock.advance(200);
  expect(await where(1)).toBe("elsewhere");
  await expect(place(() => Promise.reject(new Error("no")))).rejects.toThrow("no");
});
