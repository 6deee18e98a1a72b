import { messageOf } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { type ConfigObject, type ObjectRef, type Origin, objectKey, type RawObject } from "../object.ts";
import { isRecord } from "../parse/reading.ts";
import type { Problem } from "../problem.ts";

/** Parses and validates one document. `object` is there when it may be used; `ref` when the document says which object it is. */
export type ReadObject = (raw: RawObject) => {
  readonly object?: ConfigObject;
  readonly ref: ObjectRef | undefined;
  readonly problems: readonly Problem[];
};

/** What a document says of itself, as far as that can be read, also where the rest of it is broken. */
export interface DocumentHead {
  /** Of its kind, e.g. `v1`. */
  readonly version: string;
  readonly generation: number;
  /** ms since the epoch; 0 where it does not say. One that is made anew begins with the first generation again. */
  readonly createdAt: number;
  /** Label `istio.io/rev`: the control plane that it is for; empty where it is for all. */
  readonly revision: string;
}

/** A document after judging. */
export interface Judged {
  readonly scope: string;
  /** Place among the documents of its scope. */
  readonly index: number;
  readonly slot: string;
  readonly origin: Origin;
  readonly digest: string | undefined;
  readonly namespace: string | undefined;
  readonly ref: ObjectRef | undefined;
  readonly key: string | undefined;
  readonly object: ConfigObject | undefined;
  /** Of a document without an object, which would say the same. */
  readonly head: DocumentHead | undefined;
  readonly problems: readonly Problem[];
  /** It cannot be used and is to blame for it; a kind nobody knows is left out without blame. */
  readonly broken: boolean;
  /** The content as text, JSON or one YAML document, to outlive the process should the document break; only of good ones, and only where asked for. */
  readonly written: string | undefined;
}

export interface JudgeDeps {
  readonly readObject: ReadObject;
  readonly log: Log;
  /** Whether to keep the content of this object as text. */
  readonly keepText: (object: ConfigObject) => boolean;
}

/** Judges a document, or takes over the verdict on the one that said the same before. */
export function judge(raw: RawObject, place: { readonly scope: string; readonly index: number }, deps: JudgeDeps): Judged {
  const { object, ref, problems, head } = readSafely(raw, deps);
  // Field by field: in an object that is begun as a copy of another the rest lies apart.
  return {
    scope: place.scope,
    index: place.index,
    slot: raw.slot,
    origin: raw.origin,
    digest: raw.digest,
    namespace: raw.defaultNamespace,
    ref,
    key: ref === undefined ? undefined : objectKey(ref),
    object,
    head,
    problems,
    broken: object === undefined && problems.some((problem) => problem.level === "error"),
    written: object !== undefined && deps.keepText(object) ? (raw.written ?? JSON.stringify(raw.content)) : undefined,
  };
}

/** What a judged document says of itself. */
export const headOf = ({ object, head }: Pick<Judged, "object" | "head">): DocumentHead =>
  object === undefined
    ? (head ?? NO_HEAD)
    : {
        version: object.version,
        generation: object.generation,
        createdAt: object.createdAt,
        revision: object.labels["istio.io/rev"] ?? "",
      };

const NO_HEAD: DocumentHead = { version: "", generation: 0, createdAt: 0, revision: "" };

function headIn(content: unknown): DocumentHead {
  const { apiVersion, metadata } = isRecord(content) ? content : {};
  const { generation, creationTimestamp, labels } = isRecord(metadata) ? metadata : {};
  const revision = isRecord(labels) ? labels["istio.io/rev"] : undefined;
  return {
    version: typeof apiVersion === "string" ? apiVersion.slice(apiVersion.lastIndexOf("/") + 1) : "",
    generation: typeof generation === "number" && Number.isSafeInteger(generation) ? generation : 0,
    createdAt: (typeof creationTimestamp === "string" && Date.parse(creationTimestamp)) || 0,
    revision: typeof revision === "string" ? revision : "",
  };
}

/** The old verdict at a new place: a document that moved within its file is still the same document. */
export function moved(before: Judged, raw: RawObject, index: number): Judged {
  const lines = (raw.origin.line ?? 0) - (before.origin.line ?? 0);
  if (lines === 0 && before.index === index && before.slot === raw.slot) return before;
  const problems = lines === 0 ? before.problems : before.problems.map((problem) => shifted(problem, lines));
  return { ...before, index, slot: raw.slot, origin: raw.origin, problems };
}

const shifted = (problem: Problem, lines: number): Problem =>
  problem.line === undefined ? problem : { ...problem, line: problem.line + lines };

/** A throw is a bug of ours; it costs this document only. */
function readSafely(raw: RawObject, deps: JudgeDeps): ReturnType<ReadObject> & Pick<Judged, "head"> {
  try {
    const result = deps.readObject(raw);
    return { ...result, head: result.object === undefined && raw.fault === undefined ? headIn(raw.content) : undefined };
  } catch (error) {
    deps.log.error({ slot: raw.slot, reason: error }, "reading a document failed unexpectedly");
    const problem: Problem = {
      code: "document.unreadable",
      level: "error",
      object: { kind: "", namespace: raw.defaultNamespace ?? "", name: raw.slot },
      path: [],
      message: `reading it failed unexpectedly: ${messageOf(error)}`,
      ...(raw.origin.file !== undefined && { file: raw.origin.file }),
      ...(raw.origin.line !== undefined && { line: raw.origin.line }),
    };
    return { ref: undefined, problems: [problem], head: undefined };
  }
}
