import { describe, expect, it } from "vitest";
import { manualClock } from "../../test/support/manual-clock.ts";
import { Rounds } from "./rounds.ts";

describe("how far a stream is", () => {
  const rounds = (): Rounds => new Rounds({ clock: manualClock(), timeoutMs: 1_000, done: () => {}, converged: () => {} });

  it("is the last push before the first that it has not acknowledged all of", () => {
    const [all, a, b] = [rounds(), {}, {}];
    expect(all.begin("first", [a])).toBe(1);
    expect(all.begin("second", [a, b])).toBe(2);
    expect([all.upTo(a), all.upTo(b)]).toEqual([0, 1]);
    all.settled(a);
    expect([all.upTo(a), all.upTo(b)]).toEqual([2, 1]);
    all.begin("third", [a, b]);
    expect([all.upTo(a), all.upTo(b)]).toEqual([2, 1]);
    all.settled(b);
    expect([all.upTo(a), all.upTo(b)]).toEqual([2, 3]);
  });

  it("is still known when a push was given up as too slow", () => {
    const clock = manualClock();
    const [all, stream] = [new Rounds({ clock, timeoutMs: 1_000, done: () => {}, converged: () => {} }), {}];
    all.begin("slow", [stream]);
    clock.advance(2_000);
    expect(all.upTo(stream)).toBe(0);
    all.settled(stream);
    expect(all.upTo(stream)).toBe(1);
  });
});
