import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { holds } from "../../test/support/holds.ts";
import {
  allNodes,
  applyEdits,
  ask,
  type Edit,
  editArb,
  load,
  Model,
  type ModelNode,
  nodeName,
  type Program,
  partlyEagerArb,
  programsArb,
  type Row,
  refName,
} from "./property-model.ts";

const RUNS = { numRuns: 300 };
const stepsArb = fc.array(fc.array(editArb, { minLength: 1, maxLength: 3 }), { maxLength: 8 });
/** Which nodes to ask for at a step: a bit mask. */
const picksArb = fc.array(fc.nat(0xfff), { minLength: 9, maxLength: 9 });

describe("an engine after any edits", () => {
  it("equals computing from scratch and runs exactly what read something that changed", () => {
    holds(
      fc.property(programsArb("acyclic"), stepsArb, (programs, steps) => {
        const rows = new Map<string, Row>();
        const loaded = load(programs, rows);
        let last = new Map<string, ModelNode>();
        for (const edits of [[], ...steps]) {
          applyEdits(loaded, rows, edits);
          const model = new Model(programs, rows);
          const want = allNodes(programs)
            .filter(([q, key]) => differs(last.get(nodeName(q, key)), model))
            .map(([q, key]) => nodeName(q, key));
          loaded.runs.length = 0;
          expectEqual(loaded, model, allNodes(programs));
          expect(loaded.runs.toSorted()).toEqual(want.toSorted());
          last = new Map(allNodes(programs).map(([q, key]) => [nodeName(q, key), model.node(q, key)]));
        }
      }),
      RUNS,
    );
  });

  it("stays minimal when only some results are asked for at a time", () => {
    holds(
      fc.property(programsArb("acyclic"), stepsArb, picksArb, (programs, steps, picks) => {
        const rows = new Map<string, Row>();
        const loaded = load(programs, rows);
        const last = new Map<string, ModelNode>();
        const mayRun = new Set(allNodes(programs).map(([q, key]) => nodeName(q, key)));
        [[], ...steps].forEach((edits, i) => {
          applyEdits(loaded, rows, edits);
          const model = new Model(programs, rows);
          for (const [name, node] of last) if (differs(node, model)) mayRun.add(name);
          loaded.runs.length = 0;
          expectEqual(loaded, model, pick(programs, picks[i] ?? 0));
          expect(new Set(loaded.runs).size).toBe(loaded.runs.length);
          for (const [q, key] of allNodes(programs)) {
            const name = nodeName(q, key);
            if (!loaded.runs.includes(name)) continue;
            expect(mayRun).toContain(name);
            mayRun.delete(name);
            last.set(name, model.node(q, key));
          }
        });
      }),
      RUNS,
    );
  });

  it("with eager queries equals computing from scratch, also between the writes of a batch, whatever they read", () => {
    holds(
      fc.property(partlyEagerArb("any"), stepsArb, picksArb, (programs, steps, picks) => {
        const rows = new Map<string, Row>();
        const loaded = load(programs, rows);
        [[], ...steps].forEach((edits, i) => {
          loaded.engine.batch(() => {
            edits.forEach((edit, at) => {
              applyEdits(loaded, rows, [edit]);
              expectEqual(loaded, new Model(programs, rows), pick(programs, picks[(i + at) % picks.length] ?? 0));
            });
          });
          expectEqual(loaded, new Model(programs, rows), pick(programs, picks[i] ?? 0));
          if ((picks[i] ?? 0) % 3 === 0) loaded.engine.sweep();
        });
        expectEqual(loaded, new Model(programs, rows), allNodes(programs));
      }),
      RUNS,
    );
  });

  it("runs eager queries when something they read has changed, and others as without them", () => {
    holds(
      fc.property(partlyEagerArb("leaves"), stepsArb, (programs, steps) => {
        const rows = new Map<string, Row>();
        const loaded = load(programs, rows);
        let last = new Map<string, ModelNode>();
        for (const edits of [[], ...steps]) {
          loaded.runs.length = 0;
          applyEdits(loaded, rows, edits);
          const model = new Model(programs, rows);
          const want = allNodes(programs)
            .filter(([q, key]) => differs(last.get(nodeName(q, key)), model))
            .map(([q, key]) => nodeName(q, key));
          expect(loaded.runs.every((name) => programs[Number(/\d+/.exec(name)?.[0])]?.eager === true)).toBe(true);
          expectEqual(loaded, model, allNodes(programs));
          expect(loaded.runs.toSorted()).toEqual(want.toSorted());
          last = new Map(allNodes(programs).map(([q, key]) => [nodeName(q, key), model.node(q, key)]));
        }
      }),
      RUNS,
    );
  });

  it("passes its own recheck", () => {
    holds(
      fc.property(programsArb("acyclic"), stepsArb, (programs, steps) => {
        const rows = new Map<string, Row>();
        const loaded = load(programs, rows, { recheck: true });
        for (const edits of steps) {
          applyEdits(loaded, rows, edits);
          expectEqual(loaded, new Model(programs, rows), allNodes(programs));
        }
      }),
      { numRuns: 100 },
    );
  });

  it("gives the same results for any order of questions, cycles included", () => {
    holds(
      fc.property(programsArb("any"), stepsArb, picksArb, (programs, steps, picks) => {
        const rows = new Map<string, Row>();
        const loaded = load(programs, rows);
        const lease = loaded.engine.lease("some");
        [[], ...steps].forEach((edits, i) => {
          applyEdits(loaded, rows, edits);
          lease.run(() => {
            for (const [q, key] of pick(programs, picks[i] ?? 0)) {
              expect(ask(loaded, q, key), nodeName(q, key)).toBe(ask(load(programs, rows), q, key));
            }
          });
          if (i % 3 === 1) loaded.engine.sweep();
        });
        lease.release();
        loaded.engine.sweep();
        expect(loaded.engine.stats()).toMatchObject({ nodes: 0, edges: 0, watched: 0 });
      }),
      { numRuns: RUNS.numRuns * 2 },
    );
  });
});

describe("leases and sweep", () => {
  it("keep exactly what a lease reaches and never change a result", () => {
    holds(
      fc.property(programsArb("acyclic"), stepsArb, picksArb, (programs, steps, picks) => {
        const rows = new Map<string, Row>();
        const loaded = load(programs, rows);
        const lease = loaded.engine.lease("some");
        [[], ...steps].forEach((edits, i) => {
          applyEdits(loaded, rows, edits);
          const model = new Model(programs, rows);
          const mine = pick(programs, picks[i] ?? 0);
          lease.run(() => expectEqual(loaded, model, mine));
          expectEqual(loaded, model, pick(programs, (picks[i] ?? 0) >> 3)); // read without a lease
          loaded.engine.sweep();
          const reached = new Set(mine.flatMap(([q, key]) => [...model.below(q, key)]));
          const queries = [...reached].filter((name) => name.startsWith("q"));
          expect(loaded.engine.stats()).toMatchObject({ nodes: queries.length, watched: reached.size - queries.length });
          loaded.runs.length = 0;
          expectEqual(loaded, model, mine);
          expect(loaded.runs).toEqual([]);
        });
        lease.release();
        loaded.engine.sweep();
        expect(loaded.engine.stats()).toMatchObject({ nodes: 0, edges: 0, watched: 0 });
      }),
      RUNS,
    );
  });
});

describe("a lease that is brought up to date", () => {
  it("has nothing left to run, and says exactly whether a result differs, whatever is swept meanwhile", () => {
    holds(
      fc.property(programsArb("any"), stepsArb, picksArb, (programs, steps, picks) => {
        const rows = new Map<string, Row>();
        const loaded = load(programs, rows);
        const lease = loaded.engine.lease("some");
        const mine = pick(programs, picks[0] ?? 0);
        const asked = () => mine.map(([q, key]) => ask(loaded, q, key));
        for (const edits of steps) {
          const before = lease.run(asked);
          expect(lease.current).toBe(true);
          applyEdits(loaded, rows, edits);
          for (const _ of lease.refresh()) loaded.engine.sweep();
          const current = lease.current;
          loaded.runs.length = 0;
          const after = asked();
          expect(loaded.runs).toEqual([]);
          expect(current).toBe(after.every((one, i) => one === before[i]));
        }
        lease.release();
        loaded.engine.sweep();
        expect(loaded.engine.stats()).toMatchObject({ nodes: 0, edges: 0, watched: 0 });
      }),
      RUNS,
    );
  });
});

describe("provenance", () => {
  it("is the transitive reads", () => {
    holds(
      fc.property(programsArb("acyclic"), stepsArb, (programs, steps) => {
        const rows = new Map<string, Row>();
        const loaded = load(programs, rows);
        for (const edits of steps) {
          applyEdits(loaded, rows, edits);
          const model = new Model(programs, rows);
          for (const [q, key] of allNodes(programs)) {
            const query = loaded.queries[q];
            const got = query === undefined ? [] : loaded.engine.provenance(query, key).map(refName);
            expect(got.toSorted()).toEqual([...refNames(model.below(q, key), rows)].toSorted());
          }
        }
      }),
      RUNS,
    );
  });
});

describe("an overlay", () => {
  const editsAndPicks = fc.tuple(fc.array(editArb, { maxLength: 3 }), picksArb);

  it("equals really making the changes, leaves the base alone, and computes only what read something that changes", () => {
    holds(
      fc.property(programsArb("acyclic"), stepsArb, editsAndPicks, (programs, steps, [edits, picks]) => {
        const rows = new Map<string, Row>();
        const loaded = load(programs, rows);
        for (const step of steps) applyEdits(loaded, rows, step);
        const base = new Model(programs, rows);
        const known = pick(programs, picks[0] ?? 0);
        expectEqual(loaded, base, known);
        const before = loaded.engine.stats();
        loaded.runs.length = 0;
        const changed = new Model(programs, edited(rows, edits));
        overlaid(loaded, edits, () => expectEqual(loaded, changed, allNodes(programs)));
        const cached = new Set(known.flatMap(([q, key]) => [...base.below(q, key)]));
        for (const [q, key] of allNodes(programs)) {
          if (!loaded.runs.includes(nodeName(q, key)) || !cached.has(nodeName(q, key))) continue;
          expect([...base.node(q, key).reads].some(([read, value]) => changed.value(read) !== value)).toBe(true);
        }
        expect(new Set(loaded.runs).size).toBe(loaded.runs.length);
        expect(loaded.engine.stats()).toEqual(before);
        expectEqual(loaded, base, allNodes(programs));
      }),
      RUNS,
    );
  });

  it("does so with cycles and with a stale base", () => {
    holds(
      fc.property(programsArb("any"), stepsArb, editsAndPicks, (programs, steps, [edits, picks]) => {
        const rows = new Map<string, Row>();
        const loaded = load(programs, rows);
        steps.forEach((step, i) => {
          for (const [q, key] of pick(programs, picks[i] ?? 0)) ask(loaded, q, key);
          applyEdits(loaded, rows, step);
        });
        const after = edited(rows, edits);
        overlaid(loaded, edits, () => {
          for (const [q, key] of allNodes(programs)) expect(ask(loaded, q, key)).toBe(ask(load(programs, after), q, key));
        });
        for (const [q, key] of allNodes(programs)) expect(ask(loaded, q, key)).toBe(ask(load(programs, rows), q, key));
      }),
      RUNS,
    );
  });
});

function expectEqual(loaded: ReturnType<typeof load>, model: Model, nodes: readonly (readonly [number, number])[]): void {
  for (const [q, key] of nodes) expect(ask(loaded, q, key), nodeName(q, key)).toBe(model.node(q, key).outcome);
}

/** Whether anything a node directly read at its last run has another value now; true for a node never run. */
function differs(last: ModelNode | undefined, model: Model): boolean {
  return last === undefined || [...last.reads].some(([read, value]) => model.value(read) !== value);
}

function pick(programs: readonly Program[], mask: number): readonly (readonly [number, number])[] {
  return allNodes(programs).filter((_, i) => ((mask >> i) & 1) === 1);
}

function edited(rows: ReadonlyMap<string, Row>, edits: readonly Edit[]): Map<string, Row> {
  const copy = new Map(rows);
  for (const [key, row] of edits) {
    if (row === undefined) copy.delete(key);
    else copy.set(key, row);
  }
  return copy;
}

function overlaid(loaded: ReturnType<typeof load>, edits: readonly Edit[], fn: () => void): void {
  loaded.engine.overlay(
    edits.map(([key, value]) => ({ table: loaded.table, key, value })),
    fn,
  );
}

/** The model's names of inputs as provenance gives them: `row` or `absent`, whichever way a row was read. */
function refNames(names: ReadonlySet<string>, rows: ReadonlyMap<string, Row>): ReadonlySet<string> {
  const inputs = [...names].filter((name) => !name.startsWith("q"));
  return new Set(
    inputs.map((name) => name.replace(/^(row|has):(.*)$/, (_, __, key: string) => `${rows.has(key) ? "row" : "absent"}:${key}`)),
  );
}
