import type { RawObject } from "../../config/object.ts";
import { isRecord } from "../../config/parse/reading.ts";
import { formatPath, type Problem } from "../../config/problem.ts";
import { readObject } from "../../config/read-object.ts";

/** What `istioctl validate` says of one document. */
export interface DocumentRecord {
  readonly file: string;
  /** Where the document begins, from 1; of one that cannot be read, where the fault is. */
  readonly line: number;
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  /** Nothing worse than warnings was found. */
  readonly valid: boolean;
  readonly problems: readonly RecordedProblem[];
}

export interface RecordedProblem {
  readonly code: string;
  readonly level: "error" | "warning";
  /** `spec.http[0].route`; empty for the document as a whole. */
  readonly path: string;
  readonly message: string;
  readonly line: number;
}

/** Judges documents one by one as the control plane does. That two are the same object is only a warning here: each is in order by itself. */
export function judgeDocuments(documents: Iterable<RawObject>): readonly DocumentRecord[] {
  const firsts = new Map<string, string>();
  const records: DocumentRecord[] = [];
  for (const raw of documents) {
    const record = judgeDocument(raw);
    const key = record.name === "" ? undefined : [apiGroupOf(raw), record.kind, record.namespace, record.name].join("/");
    const first = key === undefined ? undefined : firsts.get(key);
    records.push(first === undefined ? record : { ...record, problems: [...record.problems, duplicateOf(first, record.line)] });
    if (key !== undefined && first === undefined) firsts.set(key, `${record.file}:${record.line}`);
  }
  return records;
}

function judgeDocument(raw: RawObject): DocumentRecord {
  const { ref, problems } = readObject(raw);
  const line = raw.origin.line ?? 1;
  return {
    file: raw.origin.file ?? "",
    line,
    kind: fieldOf(raw.content, "kind") || (ref?.kind ?? ""),
    namespace: ref?.namespace ?? "",
    name: ref?.name ?? "",
    valid: problems.every(({ level }) => level !== "error"),
    problems: problems.map((problem) => recordedProblem(problem, line)).sort(byLine),
  };
}

/** A problem as scripts get it. One without a line of its own is that of the document. */
export const recordedProblem = ({ code, level, path, message, line }: Problem, documentLine: number): RecordedProblem => ({
  code,
  level,
  path: formatPath(path),
  message,
  line: line ?? documentLine,
});

/** In the order of the file. */
export const byLine = (a: RecordedProblem, b: RecordedProblem): number => a.line - b.line;

const duplicateOf = (first: string, line: number): RecordedProblem => ({
  code: "object.duplicate",
  level: "warning",
  path: "metadata.name",
  message: `${first} holds the same object; where both are in one source, the first one wins`,
  line,
});

const apiGroupOf = (raw: RawObject): string => fieldOf(raw.content, "apiVersion").split("/").slice(0, -1).join("/");

function fieldOf(content: unknown, name: string): string {
  const value = isRecord(content) ? content[name] : undefined;
  return typeof value === "string" ? value : "";
}
