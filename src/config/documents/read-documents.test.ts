import fc from "fast-check";
import { dump, loadAll } from "js-yaml";
import { describe, expect, it } from "vitest";
import { holds } from "../../../test/support/holds.ts";
import type { RawObject } from "../object.ts";
import { type DocumentShape, readDocuments } from "./read-documents.ts";
import { splitDocuments } from "./split-documents.ts";
import { KUBERNETES_YAML } from "./yaml-schema.ts";

const FROM = { source: "test", file: "f.yaml", scope: "f.yaml" };
const read = (text: string): RawObject[] => [...readDocuments(text, FROM)];
const contents = (text: string): unknown[] => read(text).map((raw) => raw.fault ?? raw.content);

describe("splitting", () => {
  const table: readonly [about: string, text: string, want: readonly [line: number, text: string][]][] = [
    ["nothing", "", []],
    ["only comments", "# a\n\n--- # b\n# c\n", []],
    ["one document", "a: 1\n", [[1, "a: 1\n"]]],
    [
      "two documents, comments above",
      "# head\n---\n# more\na: 1\n---\n\nb: 2",
      [
        [4, "a: 1\n"],
        [7, "b: 2"],
      ],
    ],
    [
      "content on the marker's line",
      "--- {a: 1}\n---\tb\n",
      [
        [1, "--- {a: 1}\n"],
        [2, "---\tb\n"],
      ],
    ],
    [
      "a marker is never content",
      'a: "x\n---\ny"\n',
      [
        [1, 'a: "x\n'],
        [3, 'y"\n'],
      ],
    ],
    ["four dashes are no marker", "a: |\n  x\n---- \n", [[1, "a: |\n  x\n---- \n"]]],
    [
      "directives belong to what follows",
      "%YAML 1.2\n---\na: 1\n---\nb: 2\n",
      [
        [1, "%YAML 1.2\n---\na: 1\n"],
        [5, "b: 2\n"],
      ],
    ],
    [
      "end marker",
      "a: 1\n...\n# c\nb: 2\n",
      [
        [1, "a: 1\n...\n"],
        [4, "b: 2\n"],
      ],
    ],
    [
      "line ends of Windows and a byte order mark",
      "\ufeffa: 1\r\n---\r\nb: 2\r\n",
      [
        [1, "a: 1\r\n"],
        [3, "b: 2\r\n"],
      ],
    ],
  ];
  for (const [about, text, want] of table) {
    it(about, () => expect(splitDocuments(text).map((one) => [one.line, one.text])).toEqual(want));
  }

  it("finds the documents a whole parse finds", () => {
    const value = fc.dictionary(
      fc.stringMatching(/^[a-z]{1,4}$/),
      fc.oneof(fc.string(), fc.integer(), fc.array(fc.string({ maxLength: 5 }))),
      { minKeys: 1, noNullPrototype: true },
    );
    holds(
      fc.property(
        fc.array(value, { minLength: 1, maxLength: 5 }),
        fc.constantFrom("---\n", "# c\n---\n", "...\n---\n", "--- # c\n\n"),
        (values, marker) => {
          const text = values.map((one) => dump(one)).join(marker);
          expect(contents(text)).toEqual(loadAll(text, { schema: KUBERNETES_YAML }));
        },
      ),
      { numRuns: 200 },
    );
  });
});

describe("scalars", () => {
  const table: readonly [text: string, want: unknown][] = [
    ["yes", true],
    ["On", true],
    ["n", false],
    ["FALSE", false],
    ['"yes"', "yes"],
    ["~", null],
    ["null", null],
    ["12", 12],
    ["-7", -7],
    ["+7", 7],
    ["010", 8],
    ["0o10", 8],
    ["0x1F", 31],
    ["0b11", 3],
    ["1_000", 1000],
    ["08", 8],
    ["0", 0],
    ["1:30", "1:30"],
    ["1.5", 1.5],
    ["1e3", 1000],
    [".5", 0.5],
    [".inf", ".inf"],
    ["1.2.3", "1.2.3"],
    ["100ms", "100ms"],
    ["2020-01-02", "2020-01-02"],
    ["9007199254740993", "9007199254740993"],
    ["-9007199254740993", "-9007199254740993"],
  ]; // prettier-ignore
  for (const [text, want] of table) it(`reads ${text}`, () => expect(contents(`a: ${text}`)).toEqual([{ a: want }]));

  it("merges keys", () => expect(contents("b: &b {x: 1}\na: {<<: *b, z: 2}")).toEqual([{ b: { x: 1 }, a: { x: 1, z: 2 } }]));
  it("takes flow collections however far in they stand", () =>
    expect(contents("a:\n  b: [\n    1,\n    2\n  ]\n  c: {\n    x: 1\n  }\nd:\n- e: [\n  q\n  ]\n")).toEqual([
      { a: { b: [1, 2], c: { x: 1 } }, d: [{ e: ["q"] }] },
    ]));
  it("keeps __proto__ a plain key", () => expect(Object.keys(Object(contents("__proto__: {x: 1}")[0]))).toEqual(["__proto__"]));
});

describe("lists", () => {
  it("become their entries, each at its own line and with its own text", () => {
    const text =
      "---\n# head\nkind: List\napiVersion: v1\nitems:\n- kind: A\n  x: 1\n# between\n-   kind: B\n    w: {z: 1}\nmetadata: {}\n";
    expect(read(text).map((raw) => [raw.content, raw.origin.line, raw.text, raw.slot])).toEqual([
      [{ kind: "A", x: 1 }, 6, "  kind: A\n  x: 1\n# between\n", "f.yaml#0"],
      [{ kind: "B", w: { z: 1 } }, 9, "    kind: B\n    w: {z: 1}\n", "f.yaml#1"],
    ]);
  });

  it("give their entries the kind they lack", () => {
    const text = JSON.stringify({ kind: "ThingList", apiVersion: "g/v1", items: [{ metadata: { name: "a" } }, { kind: "Other" }] });
    expect(contents(text)).toEqual([{ apiVersion: "g/v1", kind: "Thing", metadata: { name: "a" } }, { kind: "Other" }]);
  });

  it("are told apart by digest", () => {
    const digests = read("kind: List\nitems: [{kind: A}, {kind: A}]").map((raw) => raw.digest);
    expect(new Set(digests).size).toBe(2);
  });
});

describe("faults", () => {
  const bomb = [
    "a: &a [x,x,x,x,x,x,x,x,x]",
    ..."bcdefghij".split("").map((name, i) => `${name}: &${name} [${Array(9).fill(`*${"abcdefghij"[i]}`)}]`),
  ].join("\n");
  const table: readonly [about: string, text: string, line: number, want: RegExp][] = [
    ["syntax", "a: 1\nb: c: d\n", 2, /^not valid YAML: .* \(column 5\)$/],
    ["a key twice", "a: 1\na: 2\n", 2, /duplicated mapping key/],
    ["an unknown tag", "a: !!python/object x", 1, /unknown scalar tag/],
    ["an alias bomb", bomb, 1, /more than 200000 values/],
    ["too many aliases", `x: &a 1\ny: [${Array(1_001).fill("*a")}]`, 2, /more than 1000 aliases/],
    ["an alias within itself", "a: &a [*a]", 1, /contains itself/],
    ["deep YAML", `a: ${"[".repeat(101)}`, 1, /more than 100 levels/],
    ["deep JSON", `${'{"a":'.repeat(50_000)}1${"}".repeat(50_000)}`, 1, /more than 100 levels/],
    [
      "deep by aliases",
      `a0: &a0 [1]\n${Array.from({ length: 120 }, (_, i) => `a${i + 1}: &a${i + 1} [*a${i}]`).join("\n")}`,
      1,
      /levels deep/,
    ],
  ];
  for (const [about, text, line, want] of table) {
    it(about, () => {
      const [raw, ...others] = read(text);
      expect(others).toEqual([]);
      expect(raw?.fault).toMatch(want);
      expect(raw?.origin.line).toBe(line);
      expect(raw?.content).toBeUndefined();
    });
  }

  it("never quote the text, which may be a secret", () => expect(read("password: hunter2: x")[0]?.fault).not.toContain("hunter2"));

  it("cost their document only", () => {
    expect(contents("a: 1\n---\nb: [\n---\nc: 3\n")).toEqual([{ a: 1 }, expect.stringContaining("not valid YAML"), { c: 3 }]);
  });
});

describe("documents known from before", () => {
  it("are not parsed until asked for", () => {
    const seen = { shapes: new Map<string, DocumentShape>(), documents: 0 };
    const text = "a: 1\n---\nkind: List\nitems:\n- x: 1\n- y: 1\n---\nbad: [\n";
    const before = [...readDocuments(text, FROM, { seen })];
    expect(seen.documents).toBe(3);
    const after = [...readDocuments(`# moved\n${text}`, FROM, { known: seen.shapes })];
    expect(after.map((raw) => raw.digest)).toEqual(before.map((raw) => raw.digest));
    expect(after.map((raw) => raw.origin.line)).toEqual(before.map((raw) => (raw.origin.line ?? 0) + 1));
    expect(after.map((raw) => raw.content)).toEqual(before.map((raw) => raw.content));
    expect(after.map((raw) => raw.fault)).toEqual(before.map((raw) => raw.fault));
  });
});
