import { type Clock, systemClock } from "../../base/clock.ts";
import { contentHash } from "../../base/hash.ts";
import { silentLog } from "../../base/log.ts";
import { createEngine } from "../../engine/index.ts";
import { defineInputs } from "../inputs.ts";
import type { ConfigObject, RawObject, SourceEvent } from "../object.ts";
import { levelOf, type Problem } from "../problem.ts";
import type { ProblemCode } from "../problem-codes.ts";
import type { ReadObject } from "./judge.ts";
import type { LastGood, LastGoodRecord } from "./last-good.ts";
import { createStore } from "./store.ts";

/** Documents of tests in a few letters: `x=1` is a good object, `x!` one that breaks a rule, `?1` a text nobody can read. */
export type Doc = string;

/** Where documents of tests come from. */
interface DocPlace {
  readonly source: string;
  readonly scope: string;
  readonly kind?: string;
}

/** The raw objects of one scope. */
export function rawObjects({ source, scope, kind = "Thing" }: DocPlace, docs: readonly Doc[]): RawObject[] {
  return docs.map((doc, index) => {
    const place = { origin: { source, file: scope, line: 1 + index * 10 }, slot: `${scope}#${index}`, scope, digest: contentHash(doc) };
    if (doc.startsWith("?")) return { ...place, content: undefined, fault: `cannot be read: ${doc}` };
    const [name, value] = doc.split(/[=!]/);
    return { ...place, content: { kind, metadata: { name, namespace: "ns" }, spec: doc.endsWith("!") ? { bad: true } : { value } } };
  });
}

/** What a source says when some scopes have changed: each is replaced whole, others stay. */
export const replaceEvent = (source: string, scopes: Readonly<Record<string, readonly Doc[]>>): SourceEvent => ({
  type: "replace",
  scopes: Object.entries(scopes).map(([scope, docs]) => ({ scope, objects: rawObjects({ source, scope }, docs) })),
});

/** What a source says first, or after it lost track: all there is, nothing else stays. */
export const resetEvent = (source: string, scopes: Readonly<Record<string, readonly Doc[]>>): SourceEvent => ({
  type: "reset",
  objects: Object.entries(scopes).flatMap(([scope, docs]) => rawObjects({ source, scope }, docs)),
});

interface Content {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace: string };
  readonly spec: { readonly value?: string; readonly bad?: boolean };
}

/** Reads the documents above. */
export const readThing: ReadObject = (raw) => {
  if (raw.fault !== undefined) return { ref: undefined, problems: [problem(raw, "document.unreadable", raw.fault)] };
  const { kind, metadata, spec } = raw.content as Content;
  const ref = { kind, namespace: metadata.namespace, name: metadata.name };
  if (spec.bad === true) return { ref, problems: [{ ...problem(raw, "field.invalid", "bad"), object: ref }] };
  const object: ConfigObject = {
    ...ref,
    group: "",
    version: "v1",
    labels: {},
    annotations: {},
    createdAt: 0,
    generation: 0,
    spec,
    hash: contentHash(JSON.stringify([ref, spec])),
  };
  return { object, ref, problems: [] };
};

function problem(raw: RawObject, code: ProblemCode, message: string): Problem {
  const object = { kind: "", namespace: "", name: raw.slot };
  return { code, level: levelOf(code), object, path: [], message, file: raw.origin.file ?? "", line: (raw.origin.line ?? 0) + 1 };
}

/** Last good versions in memory. */
export function memoryLastGood(): LastGood & { readonly records: Map<string, LastGoodRecord> } {
  const records = new Map<string, LastGoodRecord>();
  return {
    records,
    load: async () => [...records.values()],
    put: (record) => void records.set(`${record.source} ${record.key}`, record),
    remove: (source, key) => void records.delete(`${source} ${key}`),
    flush: async () => {},
  };
}

/** A store on a real engine. */
export function storeRig(
  options: {
    readonly sources?: readonly string[];
    readonly persistence?: LastGood;
    readonly clock?: Clock;
    readonly readObject?: ReadObject;
  } = {},
) {
  const engine = createEngine();
  const inputs = defineInputs(engine);
  const store = createStore({
    engine,
    inputs,
    sources: options.sources ?? ["a", "b"],
    readObject: options.readObject ?? readThing,
    log: silentLog,
    clock: options.clock ?? systemClock,
    ...(options.persistence !== undefined && { persistence: options.persistence }),
  });
  /** `name=value` of every row of the engine's table, in order. */
  const rows = (): string =>
    inputs.objects
      .all()
      .map((object) => `${object.name}=${(object.spec as Content["spec"]).value}`)
      .join(" ");
  return { engine, inputs, store, rows };
}
