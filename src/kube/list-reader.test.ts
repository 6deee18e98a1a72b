import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { holds } from "../../test/support/holds.ts";
import { type Picked, pickAllBut, pickOnly } from "./json-bytes.ts";
import { type KubePage, ListReader } from "./list-reader.ts";
import type { KubeObject } from "./resource-type.ts";

/** Reads a list of which so many bytes are looked at before the rest comes: behind enough space to be looked at. */
function page(text: string, picked?: Picked, cut = 20): KubePage {
  const items: KubeObject[] = [];
  const reader = new ListReader((object) => items.push(object), picked);
  const bytes = Buffer.from(text);
  reader.add(SPACE);
  reader.add(bytes.subarray(0, cut));
  reader.add(bytes.subarray(cut));
  return { ...reader.end(), items };
}
const SPACE = Buffer.alloc(64 * 1024 - 1, " ");
const pod = (name: string, more: object = {}) => ({ metadata: { name, managedFields: [{ manager: "kubelet" }], ...more } });

describe("a page of a list", () => {
  it("has its objects, without who wrote which field, and where the next page begins", () => {
    const { items, ...head } = page(
      JSON.stringify({ kind: "PodList", metadata: { resourceVersion: "7", continue: "x" }, items: [pod("a"), pod("b")] }),
    );
    expect(head).toEqual({ continue: "x", resourceVersion: "7" });
    expect([...items]).toEqual([{ metadata: { name: "a" } }, { metadata: { name: "b" } }]);
  });

  it("may say its objects first, with space anywhere, or none at all", () => {
    const { items, ...head } = page(JSON.stringify({ items: [pod("a")], metadata: { resourceVersion: "7" } }, undefined, 2));
    expect([head.resourceVersion, [...items]]).toEqual(["7", [{ metadata: { name: "a" } }]]);
    for (const none of ['{"items":[],"metadata":{}}', '{"items":null}', "{}", ' { "items" : [ ] } '])
      expect([...page(none).items]).toEqual([]);
  });

  it("has of each object what is picked", () => {
    const object = {
      ...pod("a", { uid: "1" }),
      spec: { nodeName: "n", containers: [{ name: "c", env: [1], ports: [] }, {}] },
      status: { phase: "Running" },
    };
    const text = JSON.stringify({ items: [object, { ...object, spec: null }] });
    const picked = pickOnly(["metadata.name", "spec.containers.name", "status"]);
    expect([...page(text, picked).items]).toEqual([
      { metadata: { name: "a" }, spec: { containers: [{ name: "c" }, {}] }, status: { phase: "Running" } },
      { metadata: { name: "a" }, spec: null, status: { phase: "Running" } },
    ]);
    expect([...page(text, pickAllBut(["metadata", "spec.containers.env"])).items]).toEqual([]);
  });

  it("leaves out what is no object of an API server", () => {
    expect([...page('{"items":[null,1,"x",[],{"metadata":{}},{"metadata":{"name":"a"}}]}').items]).toEqual([{ metadata: { name: "a" } }]);
  });

  it("that is none says so", () => {
    for (const text of [
      "",
      "[]",
      "null",
      "down",
      '{"items":[{"metadata":{"name":"a"}}',
      '{"items":[}',
      '{"items" [] }',
      '{"metadata":{a}}',
      '{"items":[{"metadata":{"name":a}}]}',
      '{"items":[]',
      '{"items":[],',
    ])
      expect(() => page(text), text).toThrow(expect.objectContaining({ reason: "Unreadable" }));
  });

  it("reads any object as JSON does, whatever is in its texts", () => {
    holds(
      fc.property(fc.array(fc.tuple(fc.string({ unit: "grapheme" }), fc.jsonValue())), (parts) => {
        const objects = parts.map(([name, spec]) => ({ metadata: { name }, spec, '"': { "\\\\": name } }));
        expect([...page(JSON.stringify({ items: objects })).items]).toEqual(JSON.parse(JSON.stringify(objects)));
      }),
    );
  });

  it("gives an object away when it is there, and holds no more than what is not", () => {
    const large = "x".repeat(100_000);
    const chunk = Buffer.from(`{"metadata":{"name":"a","annotations":{"a":"${large}"}}},`);
    let taken = 0;
    const reader = new ListReader(() => {
      taken += 1;
    });
    reader.add(Buffer.from('{"items":['));
    for (let turn = 1; turn <= 10; turn++) {
      reader.add(chunk);
      expect(taken).toBe(turn);
    }
    const endless = (): void => {
      reader.add(Buffer.from('{"metadata":{"name":"'));
      for (let turn = 0; turn < 500; turn++) reader.add(Buffer.from(large));
    };
    expect(endless).toThrow("larger than 16 MB");
  });

  it("is the same wherever it is cut", () => {
    const text = JSON.stringify(
      { items: [pod("ä"), null, 1, pod("b", { labels: { a: '"' } })], metadata: { resourceVersion: "7" } },
      null,
      1,
    );
    const whole = page(text, undefined, 0);
    expect(whole.items.map(({ metadata }) => metadata.name)).toEqual(["ä", "b"]);
    for (let cut = 1; cut < text.length; cut++) expect(page(text, undefined, cut), `cut at ${cut}`).toEqual(whole);
  });

  it("leaves of any object what reading all of it and picking then leaves", () => {
    holds(
      fc.property(fc.array(fc.dictionary(fc.constantFrom("a", "b", "c"), fc.jsonValue({ maxDepth: 3 }))), (specs) => {
        const text = JSON.stringify({ items: specs.map((spec) => ({ metadata: { name: "x" }, spec })) });
        const read = Array.from(page(text, pickOnly(["metadata", "spec.a", "spec.b"])).items, ({ spec }) => spec);
        expect(read).toEqual((JSON.parse(text) as { items: { spec: object }[] }).items.map(({ spec }) => only(spec, ["a", "b"])));
      }),
    );
  });
});

const only = (record: object, names: readonly string[]): object =>
  Object.fromEntries(Object.entries(record).filter(([name]) => names.includes(name)));
