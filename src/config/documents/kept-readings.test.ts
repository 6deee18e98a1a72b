import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { silentLog } from "../../base/log.ts";
import type { RawObject } from "../object.ts";
import { readObject } from "../read-object.ts";
import { judge } from "../store/judge.ts";
import { KeptReadings, type Reading, readingOf, readReadings, writeReadings } from "./kept-readings.ts";
import { readDocuments } from "./read-documents.ts";

const GOLDEN = join(import.meta.dirname, "../../../test/golden");
const FROM = { source: "test", file: "f.yaml", scope: "f.yaml", defaultNamespace: "shop" };
const DEPS = { readObject, log: silentLog, keepText: () => true };

const rawsOf = (text: string, known?: KeptReadings): RawObject[] => [...readDocuments(text, FROM, known === undefined ? {} : { known })];
const readingsOf = (text: string): Reading[] =>
  rawsOf(text).flatMap((raw, index) => readingOf(judge(raw, { scope: "f.yaml", index }, DEPS)) ?? []);

function write(readings: readonly Reading[], build = "build"): Buffer {
  const steps = writeReadings(build, readings);
  for (let step = steps.next(); ; step = steps.next()) if (step.done === true) return Buffer.from(step.value);
}

/** With characters beyond Latin-1, whose place in the bytes matters. */
const WIDE = `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: wide, annotations: {note: "日本語 ✓", other: "語"}}
spec: {hosts: [wide.example.com], ports: [{number: 80, name: http, protocol: HTTP}], resolution: DNS}
`;

const ENTRY = `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: a}
spec: {hosts: [a.example.com], ports: [{number: 80, name: http, protocol: HTTP}], resolution: DNS}
`;

describe("kept readings", () => {
  it("are what reading brings, for every object of the golden files", () => {
    const inputs = readdirSync(GOLDEN, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".in.yaml"));
    const readings = inputs.flatMap((name) => readingsOf(readFileSync(join(GOLDEN, name), "utf8")));
    expect(new Set(readings.map(({ object }) => object.kind)).size).toBeGreaterThan(10);
    const wide = readingsOf(`${WIDE}---\n${WIDE.replaceAll("wide", "wider")}`);
    expect(wide).toHaveLength(2);
    expect(readReadings("build", write([...wide, ...readings]))).toStrictEqual([...wide, ...readings]);
  });

  it("stand in for parsing and judging", () => {
    const known = new KeptReadings(readReadings("build", write(readingsOf(ENTRY))));
    const [raw] = rawsOf(`# moved\n---\n${ENTRY}`, known);
    const [fresh] = rawsOf(`# moved\n---\n${ENTRY}`);
    if (raw === undefined || fresh === undefined) throw new Error("there must be a document");
    const refuse = (): never => {
      throw new Error("must not be read");
    };
    expect(known.reader(refuse)(raw)).toStrictEqual(readObject(fresh));
    expect([raw.content, raw.origin, raw.digest]).toEqual([fresh.content, fresh.origin, fresh.digest]);
    expect(known.taken).toBe(1);
  });

  it("are for the namespace they were read with", () => {
    const known = new KeptReadings(readingsOf(ENTRY));
    const elsewhere = [...readDocuments(ENTRY, { ...FROM, defaultNamespace: "other" }, { known })];
    expect(elsewhere.map((raw) => known.reader(readObject)(raw).ref?.namespace)).toEqual(["other"]);
    expect(known.taken).toBe(0);
  });

  it("are left out for other builds and where a byte has changed", () => {
    const bytes = write(readingsOf(ENTRY));
    expect(readReadings("build", bytes)).toHaveLength(1);
    expect(readReadings("another", bytes)).toEqual([]);
    expect(readReadings("build", bytes.subarray(0, -1))).toEqual([]);
    expect(readReadings("build", Buffer.alloc(0))).toEqual([]);
    for (let at = 0; at < bytes.length; at += 7) {
      const damaged = Buffer.from(bytes);
      damaged[at] = (damaged[at] ?? 0) ^ 1;
      expect(readReadings("build", damaged)).toEqual([]);
    }
  });

  const left: readonly [what: string, text: string][] = [
    ["secrets", "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {password: hunter2}\n"],
    ["documents with a fault, or even a warning", ENTRY.replace("DNS", "STATICK")],
    [
      "entries of lists",
      `apiVersion: v1\nkind: List\nitems:\n- ${ENTRY.trim().replaceAll("\n", "\n  ")}\n- ${ENTRY.trim().replaceAll("\n", "\n  ")}\n`,
    ],
    ["kinds of others", "apiVersion: v1\nkind: Namespace\nmetadata: {name: n}\n"],
  ];
  for (const [what, text] of left) it(`are not kept of ${what}`, () => expect(readingsOf(text)).toEqual([]));
});
