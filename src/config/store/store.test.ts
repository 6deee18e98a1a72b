import { describe, expect, it } from "vitest";
import { nothingSeen, readDocuments } from "../documents/read-documents.ts";
import type { RawObject } from "../object.ts";
import { readObject } from "../read-object.ts";
import { type Doc, memoryLastGood, rawObjects, readThing, replaceEvent, resetEvent, storeRig } from "./store-rig.ts";

describe("one source", () => {
  it("applies an event as one change of the engine", async () => {
    const { engine, rows, store } = storeRig();
    const before = engine.revision;
    const summary = await store.apply("a", resetEvent("a", { f: ["x=1", "y=1"], g: ["z=1"] }));
    expect(engine.revision).toBe(before + 1);
    expect(rows()).toBe("x=1 y=1 z=1");
    expect(summary).toMatchObject({ added: ["Thing/ns/x", "Thing/ns/y", "Thing/ns/z"], changed: [], removed: [], broken: [] });
    expect(await store.apply("a", replaceEvent("a", { f: ["x=2"], h: ["w=1"] }))).toMatchObject({
      added: ["Thing/ns/w"],
      changed: ["Thing/ns/x"],
      removed: ["Thing/ns/y"],
    });
    expect(rows()).toBe("w=1 x=2 z=1");
  });

  it("tells of each of its documents how it stands and what it says of itself, whether or not it is in force", async () => {
    const { store } = storeRig();
    const broken = (doc: string): RawObject[] =>
      rawObjects({ source: "b", scope: doc }, [doc]).map((raw) => ({
        ...raw,
        content: {
          ...(raw.content as object),
          apiVersion: "g/v7",
          metadata: { name: doc.slice(0, 1), namespace: "ns", generation: 4, labels: { "istio.io/rev": "canary" } },
        },
      }));
    await store.apply("a", resetEvent("a", { f: ["x=1"] }));
    await store.apply("b", resetEvent("b", { f: ["x=2"], g: ["y=1"], h: ["z!"] }));
    await store.apply("b", {
      type: "replace",
      scopes: ["y!", "z!"].map((doc, index) => ({ scope: ["g", "h"][index] ?? "", objects: broken(doc) })),
    });
    const told = [...store.documents("b", () => true)].map(({ key, state, head, problems }) => [
      key,
      state,
      `${head.version} ${head.generation} ${head.revision}`,
      problems.length,
    ]);
    expect(told).toEqual([
      ["Thing/ns/x", "shadowed", "v1 0 ", 0],
      ["Thing/ns/y", "stale", "v7 4 canary", 1],
      ["Thing/ns/z", "absent", "v7 4 canary", 1],
    ]);
    expect([...store.documents("a", () => true)].map(({ state }) => state)).toEqual(["current"]);
    expect([...store.documents("a", (kind) => kind === "Other")]).toEqual([]);
  });

  it("shows nothing of an event before its commit", async () => {
    const { rows, store } = storeRig();
    await store.stage("a", resetEvent("a", { f: ["x=1"] }));
    await store.stage("a", replaceEvent("a", { f: ["x=2"] }));
    expect(rows()).toBe("");
    expect(store.pending).toBe(true);
    store.commit();
    expect(rows()).toBe("x=2");
    expect(store.pending).toBe(false);
  });

  it("changes nothing in the engine when an object only moves, but knows its new place", async () => {
    const { engine, store } = storeRig();
    await store.apply("a", resetEvent("a", { f: ["x=1", "y=1"] }));
    const before = engine.revision;
    await store.apply("a", replaceEvent("a", { f: ["y=1", "x=1"] }));
    expect(engine.revision).toBe(before);
    expect(store.origin("Thing/ns/x")).toEqual({ source: "a", file: "f", line: 11 });
    await store.apply("a", replaceEvent("a", { f: [], g: ["x=1", "y=1"] }));
    expect(engine.revision).toBe(before);
    expect(store.origin("Thing/ns/x")).toEqual({ source: "a", file: "g", line: 1 });
  });

  it("judges only documents that say something new", async () => {
    let judged = 0;
    const { store } = storeRig({
      readObject: (raw) => {
        judged += 1;
        return readThing(raw);
      },
    });
    await store.apply("a", resetEvent("a", { f: ["x=1", "y!", "z=1"] }));
    expect(judged).toBe(3);
    const lazy = rawObjects({ source: "a", scope: "f" }, ["w=1", "x=1", "y!", "z=1"]).map((raw, index): RawObject => {
      if (index === 0) return raw;
      return {
        ...raw,
        get content(): unknown {
          throw new Error("nobody should ask");
        },
      };
    });
    expect(await store.stage("a", { type: "replace", scopes: [{ scope: "f", objects: lazy }] })).toEqual({ documents: 4, reused: 3 });
    store.commit();
    expect(judged).toBe(4);
    expect(store.problems().map((one) => [one.code, one.line])).toEqual([["field.invalid", 22]]);
  });

  it("lets the first of two documents win, by scope and place, whatever order they come in", async () => {
    const { rows, store } = storeRig();
    await store.apply("a", resetEvent("a", { m: ["x=2", "x=3"] }));
    expect(rows()).toBe("x=2");
    await store.apply("a", replaceEvent("a", { b: ["x=1"] }));
    expect(rows()).toBe("x=1");
    expect(store.problems().map((one) => [one.code, one.file, one.line])).toEqual([
      ["object.duplicate", "m", 1],
      ["object.duplicate", "m", 11],
    ]);
    await store.apply("a", replaceEvent("a", { b: [] }));
    expect(rows()).toBe("x=2");
  });

  it("gives the loop a turn while it judges a large event", async () => {
    const docs: Doc[] = Array.from({ length: 3_000 }, (_, i) => `o${i}=1`);
    const slow = storeRig({
      readObject: (raw) => {
        for (const until = performance.now() + 0.02; performance.now() < until; );
        return readThing(raw);
      },
    });
    let turns = 0;
    let open = true;
    const turn = (): void => {
      turns += 1;
      if (open) setImmediate(turn);
    };
    setImmediate(turn);
    await slow.store.stage("a", resetEvent("a", { f: docs }));
    open = false;
    expect(turns).toBeGreaterThanOrEqual(4);
    expect(slow.store.commit().added).toHaveLength(3_000);
  });

  it("survives a reader that throws", async () => {
    const { rows, store } = storeRig({
      readObject: (raw) => {
        if (raw.slot === "f#0") throw new Error("a bug");
        return readThing(raw);
      },
    });
    await store.apply("a", resetEvent("a", { f: ["x=1", "y=1"] }));
    expect(rows()).toBe("y=1");
    expect(store.problems()[0]?.message).toContain("a bug");
  });
});

describe("last good", () => {
  it("keeps the previous version of a broken object and all others", async () => {
    const { rows, store } = storeRig();
    await store.apply("a", resetEvent("a", { f: ["x=1", "y=1"] }));
    expect(await store.apply("a", replaceEvent("a", { f: ["x!", "y=2"] }))).toMatchObject({
      changed: ["Thing/ns/y"],
      removed: [],
      broken: ["Thing/ns/x"],
    });
    expect(rows()).toBe("x=1 y=2");
    expect(store.status("Thing/ns/x")).toMatchObject({ state: "stale", source: "a", problems: [{ code: "field.invalid" }] });
    await store.apply("a", replaceEvent("a", { f: ["x=3", "y=2"] }));
    expect(rows()).toBe("x=3 y=2");
    expect(store.status("Thing/ns/x")).toMatchObject({ state: "current", staleSince: undefined, problems: [] });
  });

  it("has nothing for an object that was never good", async () => {
    const { rows, store } = storeRig();
    await store.apply("a", resetEvent("a", { f: ["x!", "y=1"] }));
    expect(rows()).toBe("y=1");
    expect(store.status("Thing/ns/x")).toMatchObject({ state: "absent", origin: { file: "f", line: 1 } });
  });

  it("keeps everything a file held while one of its documents has no readable name", async () => {
    const { rows, store } = storeRig();
    await store.apply("a", resetEvent("a", { f: ["x=1", "y=1"], g: ["z=1"] }));
    const summary = await store.apply("a", replaceEvent("a", { f: ["?1"], g: [] }));
    expect(summary).toMatchObject({ removed: ["Thing/ns/z"], broken: ["f:1"] });
    expect(rows()).toBe("x=1 y=1");
    await store.apply("a", replaceEvent("a", { f: ["y=2", "?1"] }));
    expect(rows()).toBe("x=1 y=2");
    await store.apply("a", replaceEvent("a", { f: ["y=2"] }));
    expect(rows()).toBe("y=2");
  });

  it("lets go of a broken object when its file is deleted, and follows it when the file is renamed", async () => {
    const { rows, store } = storeRig();
    await store.apply("a", resetEvent("a", { f: ["x=1"], g: ["y=1"] }));
    await store.apply("a", replaceEvent("a", { f: ["?1"], g: ["y!"] }));
    expect(rows()).toBe("x=1 y=1");
    await store.apply("a", replaceEvent("a", { h: ["?1"], i: ["y!"] }));
    await store.apply("a", replaceEvent("a", { f: [], g: [] }));
    expect(rows()).toBe("x=1 y=1");
    await store.apply("a", replaceEvent("a", { h: [], i: [] }));
    expect(rows()).toBe("");
  });

  it("outlives a restart, and is forgotten when the document is good or gone", async () => {
    const persistence = memoryLastGood();
    const before = storeRig({ persistence });
    await before.store.apply("a", resetEvent("a", { f: ["x=1", "y=1", "z=1"], g: ["w=1"] }));
    expect(persistence.records.size).toBe(0);
    await before.store.apply("a", replaceEvent("a", { f: ["x!", "y!", "z=2"], g: ["?1"] }));
    expect([...persistence.records.keys()].sort()).toEqual(["a Thing/ns/w", "a Thing/ns/x", "a Thing/ns/y"]);

    const after = storeRig({ persistence, sources: [] });
    await after.store.restore();
    after.store.setSources(["b", "a"]);
    expect(after.rows()).toBe("");
    await after.store.apply("a", resetEvent("a", { f: ["x!", "z=2"], g: ["?1"] }));
    expect(after.rows()).toBe("w=1 x=1 z=2");
    expect([...persistence.records.keys()].sort()).toEqual(["a Thing/ns/w", "a Thing/ns/x"]);
    await after.store.apply("a", replaceEvent("a", { f: ["x=5"], g: ["w=5"] }));
    expect(persistence.records.size).toBe(0);
  });
});

describe("a source that reads each object when it is asked for", () => {
  it("is asked for the next one when the last is judged", async () => {
    const order: string[] = [];
    const { rows, store } = storeRig({
      readObject: (raw) => {
        order.push(`judge ${raw.slot}`);
        return readThing(raw);
      },
    });
    async function* objects() {
      for (const raw of rawObjects({ source: "a", scope: "f" }, ["x=1", "y=1"])) {
        order.push(`read ${raw.slot}`);
        yield raw;
      }
    }
    expect(await store.stage("a", { type: "reset", objects: objects() })).toEqual({ documents: 2, reused: 0 });
    expect(order).toEqual(["read f#0", "judge f#0", "read f#1", "judge f#1"]);
    store.commit();
    expect(rows()).toBe("x=1 y=1");
  });

  it("is not believed where it fails half-way", async () => {
    const { rows, store } = storeRig();
    await store.apply("a", resetEvent("a", { f: ["x=1", "y=1"] }));
    async function* objects() {
      yield* rawObjects({ source: "a", scope: "f" }, ["x=2"]);
      throw new Error("gone");
    }
    await expect(store.stage("a", { type: "reset", objects: objects() })).rejects.toThrow("gone");
    expect(store.pending).toBe(false);
    expect(rows()).toBe("x=1 y=1");
    await store.apply("a", replaceEvent("a", { f: ["x=3", "y=1"] }));
    expect(rows()).toBe("x=3 y=1");
  });
});

describe("what files say", () => {
  const HOST = (host: string): string =>
    `# said so\napiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata:\n  name: ${host}\nspec:\n  hosts: &h [${host}.example]\n`;
  const texts: readonly [about: string, text: string, broken: string][] = [
    ["two documents", `${HOST("a")}---\n${HOST("b")}`, `${HOST("a")}---\n${HOST("b").replace("[", "{")}`],
    [
      "a list",
      JSON.stringify({ kind: "List", items: ["a", "b"].map((name) => entryOf(name)) }),
      JSON.stringify({ kind: "List", items: [entryOf("a"), { ...entryOf("b"), spec: { hosts: "b" } }] }),
    ],
  ];
  for (const [about, text, broken] of texts)
    it(`outlives the process as it was said, of ${about}`, async () => {
      const persistence = memoryLastGood();
      const { store } = storeRig({ persistence, readObject });
      const from = { source: "a", file: "f", scope: "f", defaultNamespace: "ns" };
      const seen = nothingSeen();
      await store.apply("a", { type: "reset", objects: readDocuments(text, from, { seen, sharesText: true }) });
      const objects = [...readDocuments(broken, from, { known: seen.shapes })];
      await store.apply("a", { type: "replace", scopes: [{ scope: "f", objects }] });
      expect([...persistence.records.values()]).toMatchObject([{ key: "ServiceEntry/ns/b", content: entryOf("b") }]);
    });
});

const entryOf = (name: string) => ({
  apiVersion: "networking.istio.io/v1",
  kind: "ServiceEntry",
  metadata: { name },
  spec: { hosts: [`${name}.example`] },
});

describe("secrets", () => {
  it("stay out of the engine and off the disk", async () => {
    const persistence = memoryLastGood();
    const { inputs, store } = storeRig({ persistence });
    const say = (docs: readonly Doc[]) =>
      store.apply("a", { type: "reset", objects: rawObjects({ source: "a", scope: "f", kind: "Secret" }, docs) });
    expect(await say(["x=1"])).toMatchObject({ added: ["Secret/ns/x"] });
    expect(inputs.objects.size).toBe(0);
    expect(store.get("Secret/ns/x")?.spec).toEqual({ value: "1" });
    await say(["x!"]);
    expect(store.status("Secret/ns/x")?.state).toBe("stale");
    expect(persistence.records.size).toBe(0);
  });
});

describe("several sources", () => {
  it("lets the earlier source win and shows the other as shadowed", async () => {
    const { rows, store } = storeRig();
    await store.apply("b", resetEvent("b", { k: ["x=2", "y=2"] }));
    await store.apply("a", resetEvent("a", { f: ["x=1"] }));
    expect(rows()).toBe("x=1 y=2");
    expect(store.problems()).toMatchObject([{ code: "object.shadowed", level: "warning", file: "k", object: { name: "x" } }]);
    await store.apply("a", replaceEvent("a", { f: ["x!"] }));
    expect(rows()).toBe("x=1 y=2");
    await store.apply("a", replaceEvent("a", { f: [] }));
    expect(rows()).toBe("x=2 y=2");
    expect(store.problems()).toEqual([]);
  });

  it("takes other sources, or another order, as one change", async () => {
    const { engine, rows, store } = storeRig();
    await store.apply("a", resetEvent("a", { f: ["x=1", "y=1"] }));
    await store.apply("b", resetEvent("b", { k: ["x=2"] }));
    store.setSources(["b", "a"]);
    expect(store.pending).toBe(true);
    expect(store.commit()).toMatchObject({ changed: ["Thing/ns/x"] });
    expect(rows()).toBe("x=2 y=1");
    const before = engine.revision;
    store.setSources(["b"]);
    expect(store.commit()).toMatchObject({ removed: ["Thing/ns/y"] });
    expect(engine.revision).toBe(before + 1);
    expect(store.list().map(({ object, status }) => [object.name, status.source])).toEqual([["x", "b"]]);
  });
});
