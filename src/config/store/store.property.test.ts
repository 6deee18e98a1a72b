import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { holds } from "../../../test/support/holds.ts";
import { type Doc, memoryLastGood, replaceEvent, resetEvent, storeRig } from "./store-rig.ts";

const SOURCES = ["a", "b"] as const;
const NAMES = ["x", "y", "z"] as const;

type Scopes = Record<string, readonly Doc[]>;
interface Step {
  readonly source: (typeof SOURCES)[number];
  readonly reset: boolean;
  readonly scopes: Scopes;
  readonly commit: boolean;
}

const doc: fc.Arbitrary<Doc> = fc.oneof(
  { weight: 4, arbitrary: fc.tuple(fc.constantFrom(...NAMES), fc.constantFrom("1", "2")).map(([name, value]) => `${name}=${value}`) },
  { weight: 2, arbitrary: fc.constantFrom(...NAMES).map((name) => `${name}!`) },
  { weight: 1, arbitrary: fc.constantFrom("?1", "?2") },
);
const scopes: fc.Arbitrary<Scopes> = fc.dictionary(fc.constantFrom("f", "g", "h"), fc.array(doc, { maxLength: 3 }), {
  maxKeys: 2,
  noNullPrototype: true,
});
const step: fc.Arbitrary<Step> = fc.record({
  source: fc.constantFrom(...SOURCES),
  reset: fc.nat(4).map((n) => n === 0),
  scopes,
  commit: fc.boolean(),
});

/** The rules once more, without any cleverness: everything is decided again after every commit. */
class Model {
  readonly files = new Map<string, readonly Doc[]>();
  readonly good = new Map<string, { value: string; scope: string }>();

  put(scope: string, docs: readonly Doc[]): void {
    const lost = unreadable(this.files.get(scope) ?? []);
    if (docs.length === 0 && lost.length > 0) {
      const heir = [...this.files].find(([name, held]) => name !== scope && unreadable(held).some((one) => lost.includes(one)))?.[0];
      if (heir !== undefined) for (const [name, good] of this.good) if (good.scope === scope) this.good.set(name, { ...good, scope: heir });
    }
    this.files.delete(scope);
    if (docs.length > 0) this.files.set(scope, docs);
  }

  reset(next: Scopes): void {
    const kept = Object.entries(next).filter(([, docs]) => docs.length > 0);
    for (const scope of [...this.files.keys()]) if (!kept.some(([name]) => name === scope)) this.put(scope, []);
    for (const [scope, docs] of kept) this.put(scope, docs);
  }

  settle(): Map<string, string> {
    const inForce = new Map<string, string>();
    for (const name of NAMES) {
      const docs = [...this.files].sort(([a], [b]) => (a < b ? -1 : 1)).flatMap(([scope, held]) => held.map((text) => ({ scope, text })));
      const mine = docs.filter(({ text }) => text.startsWith(name));
      const goods = mine.filter(({ text }) => text.includes("=")).map(({ scope, text }) => ({ scope, value: text.slice(2) }));
      const last = this.good.get(name);
      const owner = mine[0];
      const held = last !== undefined && unreadable(this.files.get(last.scope) ?? []).length > 0 ? last : undefined;
      const chosen = owner === undefined ? held : owner.text.includes("=") ? goods[0] : (last ?? goods[0]);
      if (chosen === undefined) this.good.delete(name);
      else {
        this.good.set(name, chosen);
        inForce.set(name, chosen.value);
      }
    }
    return inForce;
  }
}

const unreadable = (docs: readonly Doc[]): readonly Doc[] => docs.filter((one) => one.startsWith("?"));

/** What is wrong, counted: texts nobody can read, broken rules, names that a document before or a source before has. */
function faults(models: ReadonlyMap<string, Model>, inForceOfFirst: ReadonlyMap<string, string>): readonly string[] {
  return [...models].flatMap(([source, { files }]) => {
    const docs = [...files.values()].flat();
    const ofNames = NAMES.flatMap((name) => {
      const mine = docs.filter((text) => text.startsWith(name));
      const shadowed = source !== SOURCES[0] && mine.length > 0 && inForceOfFirst.has(name);
      return [...mine.slice(1).map(() => "object.duplicate"), ...(shadowed ? ["object.shadowed"] : [])];
    });
    return [
      ...unreadable(docs).map(() => "document.unreadable"),
      ...docs.filter((text) => text.endsWith("!")).map(() => "field.invalid"),
      ...ofNames,
    ];
  });
}

const tally = (codes: readonly string[]): readonly string[] => codes.toSorted();

const shown = (values: ReadonlyMap<string, string>): string =>
  NAMES.flatMap((name) => (values.has(name) ? [`${name}=${values.get(name)}`] : [])).join(" ");

describe("the store", () => {
  it("equals a simple model for any events of two sources, and changes the engine only where the model changes", async () => {
    await holds(
      fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
        const { engine, rows, store } = storeRig();
        const models = new Map(SOURCES.map((name) => [name, new Model()]));
        let shownBefore = "";
        for (const { commit, reset, scopes: next, source } of steps) {
          const event = reset ? resetEvent(source, next) : replaceEvent(source, next);
          const model = models.get(source);
          if (reset) model?.reset(next);
          else for (const [scope, docs] of Object.entries(next)) model?.put(scope, docs);
          await store.stage(source, event);
          if (!commit) continue;
          const revision = engine.revision;
          const summary = store.commit();
          const [first, second] = SOURCES.map((name) => models.get(name)?.settle() ?? new Map());
          const want = shown(new Map([...(second ?? []), ...(first ?? [])]));
          expect(rows()).toBe(want);
          expect(engine.revision).toBe(want === shownBefore ? revision : revision + 1);
          expect(tally(store.problems().map(({ code }) => code))).toEqual(tally(faults(models, first ?? new Map())));
          expect(summary.added.length + summary.changed.length + summary.removed.length > 0).toBe(want !== shownBefore);
          shownBefore = want;
        }
      }),
      { numRuns: 500 },
    );
  });

  it("serves after a restart what it served before", async () => {
    await holds(
      fc.asyncProperty(fc.array(scopes, { maxLength: 8 }), async (events) => {
        const persistence = memoryLastGood();
        const before = storeRig({ persistence });
        const files = new Map<string, readonly Doc[]>();
        for (const next of events) {
          await before.store.apply("a", replaceEvent("a", next));
          for (const [scope, docs] of Object.entries(next)) files.set(scope, docs);
        }
        const after = storeRig({ persistence });
        await after.store.restore();
        await after.store.apply("a", resetEvent("a", Object.fromEntries(files)));
        expect(after.rows()).toBe(before.rows());
      }),
      { numRuns: 500 },
    );
  });
});
