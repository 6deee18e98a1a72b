import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { manualClock } from "../../test/support/manual-clock.ts";
import { GRPC_STATUS } from "../wire/grpc-status.ts";
import { Admission, type AdmissionLimits, type Entrant } from "./admission.ts";

function setUp(limits: Partial<AdmissionLimits> = {}) {
  const clock = manualClock();
  const admitted: string[] = [];
  const away: string[] = [];
  const load = { newcomers: 0 };
  const admission = new Admission({
    clock,
    newcomers: () => load.newcomers,
    limits: { mostNewcomers: 2, mostWaiting: 100, perSecond: 0, ...limits },
  });
  const entrants = new Map<string, Entrant>();
  const entrant = (name: string): Entrant => {
    const known = entrants.get(name) ?? {
      admit: () => void admitted.push(name),
      turnAway: (status, reason) => void away.push(`${name} ${status} ${reason}`),
    };
    entrants.set(name, known);
    return known;
  };
  const enter = (...names: string[]): boolean[] => names.map((name) => admission.enter(entrant(name)));
  return { clock, admitted, away, load, admission, entrant, enter };
}

describe("admission", () => {
  it("lets streams in at once while newcomers are few, and the others in the order they came", () => {
    const { admitted, admission, entrant, enter, load } = setUp();
    enter("a", "b", "c", "d");
    assert.deepEqual(admitted, ["a", "b"]);
    assert.equal(admission.waiting, 2);
    admission.arrived(entrant("a"));
    load.newcomers = 1;
    admission.advance();
    assert.deepEqual(admitted, ["a", "b"], "one is on its way, one waits to be served");
    load.newcomers = 0;
    admission.advance();
    admission.arrived(entrant("b"));
    admission.advance();
    assert.deepEqual(admitted, ["a", "b", "c", "d"]);
  });

  it("waits for nobody who keeps silent or goes away", () => {
    const { clock, admitted, admission, entrant, enter } = setUp();
    enter("silent 1", "silent 2", "gone", "c", "d", "e");
    admission.leave(entrant("gone"));
    clock.advance(100);
    assert.deepEqual(admitted.slice(2), ["c", "d"]);
    admission.leave(entrant("c"));
    admission.advance();
    assert.deepEqual(admitted.slice(2), ["c", "d", "e"]);
    assert.equal(admission.waiting, 0);
  });

  it("keeps to a rate where one is set", () => {
    const { clock, admitted, enter } = setUp({ perSecond: 4, mostNewcomers: 100 });
    enter(..."abcdefghij");
    const counts = [admitted.length];
    for (let turn = 0; turn < 4; turn += 1) {
      clock.advance(250);
      counts.push(admitted.length);
    }
    assert.deepEqual(counts, [1, 2, 3, 4, 5]);
  });

  it("says no when too many wait, and to all who wait when it ends", () => {
    const { away, admission, enter } = setUp({ mostWaiting: 2 });
    assert.deepEqual(enter("a", "b", "c", "d", "e"), [true, true, true, true, false]);
    admission.stop(GRPC_STATUS.UNAVAILABLE, "bye");
    assert.deepEqual(away, ["c 14 bye", "d 14 bye"]);
  });

  it("where memory is short lets in one a second, and where it is very short nobody", () => {
    const { clock, admitted, admission, enter } = setUp({ mostNewcomers: 100 });
    admission.door = "ajar";
    enter("a", "b", "c");
    clock.advance(900);
    assert.deepEqual(admitted, ["a"]);
    clock.advance(100);
    assert.deepEqual(admitted, ["a", "b"]);
    admission.door = "shut";
    clock.advance(10_000);
    assert.deepEqual(admitted, ["a", "b"]);
    assert.deepEqual(enter("d"), [false]);
    admission.door = "open";
    assert.deepEqual(admitted, ["a", "b", "c"]);
  });
});
