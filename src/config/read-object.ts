import { messageOf } from "../base/errors.ts";
import { nearestWord } from "../base/nearest-word.ts";
import { quote } from "../base/quote.ts";
import { contentDigest } from "./content-digest.ts";
import { lineFinder } from "./find-line.ts";
import type { KindDef, Report } from "./kind-def.ts";
import { kindNamesOf, kindOf } from "./kinds/index.ts";
import type { ConfigObject, ObjectRef, RawObject } from "./object.ts";
import { isRecord, typeName } from "./parse/reading.ts";
import { levelOf, type Problem } from "./problem.ts";
import { type Metadata, readMetadata } from "./read-metadata.ts";

/** What became of a document. */
export interface ReadResult {
  /** There when the object may be used: nothing worse than warnings was found. */
  readonly object?: ConfigObject;
  /** Which object the document speaks of, whether or not it is in order; undefined where it does not say. */
  readonly ref: ObjectRef | undefined;
  readonly problems: readonly Problem[];
}

/** More problems than this in one document help nobody. */
const MOST_PROBLEMS = 100;
const DEFAULT_NAMESPACE = "default";
const NOBODY: ObjectRef = { kind: "", namespace: "", name: "" };
const DOCUMENT_FIELDS: ReadonlySet<string> = new Set(["apiVersion", "kind", "metadata", "spec", "status"]);

type Document = Readonly<Record<string, unknown>>;

/** Reads, judges and hashes one document. Never throws, whatever the document holds: a fault of ours is reported as one of the document. */
export function readObject(raw: RawObject): ReadResult {
  const faults: Omit<Problem, "object">[] = [];
  const report: Report = (found, path, message) => {
    const isNewer = found === "schema.unknown-field" && raw.origin.isServed === true && path[0] === "spec";
    const code = isNewer ? "schema.newer-field" : found;
    if (faults.length < MOST_PROBLEMS) faults.push({ code, level: levelOf(code), path, message });
  };
  let result: Omit<ReadResult, "problems">;
  try {
    result = readDocument(raw, report, () => faults.some((fault) => fault.level === "error"));
  } catch (error) {
    faults.unshift({ code: "document.unreadable", level: "error", path: [], message: `could not be judged: ${messageOf(error)}` });
    result = { ref: undefined };
  }
  return { ...result, problems: faults.length === 0 ? [] : withPlaces(faults, raw, result.ref ?? NOBODY) };
}

function readDocument(raw: RawObject, report: Report, isBroken: () => boolean): Omit<ReadResult, "problems"> {
  const document = raw.fault === undefined ? raw.content : undefined;
  if (raw.fault !== undefined) report("document.unreadable", [], raw.fault);
  else if (!isRecord(document)) report("document.not-an-object", [], `must be an object, not ${typeName(document)}`);
  if (!isRecord(document)) return { ref: undefined };
  const type = readType(document, report);
  if (type === undefined) return { ref: undefined };
  const def = kindOf(type.group, type.kind);
  // A kind nobody knows may follow other rules than ours: nothing else is said about it.
  const metadata = readMetadata(document.metadata, def === undefined ? () => {} : report, {
    isNamespaced: def?.scope !== "Cluster",
    defaultNamespace: raw.defaultNamespace ?? DEFAULT_NAMESPACE,
  });
  const ref: ObjectRef | undefined =
    metadata.name === undefined
      ? undefined
      : { kind: def?.kind ?? type.kind, namespace: metadata.namespace, name: metadata.name, ...clusterOf(raw) };
  if (def === undefined) {
    reportUnknown(type, report);
    return { ref };
  }
  if (!def.versions.includes(type.version)) {
    report(
      "kind.version",
      ["apiVersion"],
      `${def.writtenKind ?? def.kind} is read in versions ${def.versions.join(", ")}, not ${quote(type.version)}`,
    );
    return { ref };
  }
  const object = readBody({ document, def, version: type.version, metadata, ...clusterOf(raw) }, report, isBroken);
  return object === undefined ? { ref } : { object, ref };
}

/** Directories may hold what is meant for others, such as Deployments. A kind that Istio's own group does not have is nobody's. */
function reportUnknown({ group, version, kind }: DocumentType, report: Report): void {
  const known = kindNamesOf(group);
  const near = nearestWord(kind, known);
  const hint = near === undefined ? "" : `; did you mean ${near}?`;
  if (known.length > 0) report("kind.absent", ["kind"], `${group} has no kind ${quote(kind)}${hint}`);
  else report("kind.unknown", ["kind"], `${quote(kind)} of ${quote(group === "" ? version : group)} is not known here`);
}

interface DocumentType {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

/** apiVersion and kind, taken apart. */
function readType(document: Document, report: Report): DocumentType | undefined {
  const { apiVersion, kind } = document;
  if (typeof apiVersion !== "string" || apiVersion === "" || typeof kind !== "string" || kind === "") {
    for (const [name, value] of Object.entries({ apiVersion, kind })) {
      if (typeof value !== "string" || value === "") report("document.not-an-object", [name], "must be set, to a text");
    }
    return undefined;
  }
  const slash = apiVersion.lastIndexOf("/");
  return { group: slash === -1 ? "" : apiVersion.slice(0, slash), version: apiVersion.slice(slash + 1), kind };
}

const clusterOf = ({ cluster }: RawObject): Pick<RawObject, "cluster"> => (cluster === undefined ? {} : { cluster });

interface Parts extends Pick<RawObject, "cluster"> {
  readonly document: Document;
  readonly def: KindDef;
  readonly version: string;
  readonly metadata: Metadata;
}

function readBody(parts: Parts, report: Report, isBroken: () => boolean): ConfigObject | undefined {
  const { document, def, version, metadata, cluster } = parts;
  const { name, namespace, labels, annotations, createdAt, generation } = metadata;
  if (def.body === "spec") {
    for (const key of Object.keys(document)) {
      if (!DOCUMENT_FIELDS.has(key)) report("schema.unknown-field", [key], `${def.writtenKind ?? def.kind} has no field ${quote(key)}`);
    }
  }
  const body = def.body === "" ? document : document[def.body];
  const spec = def.parse(body, report);
  if (name === undefined || isBroken()) return undefined;
  const { kind, group } = def;
  // Of kinds that are read in part only that part counts, so that a heartbeat in a status changes nothing.
  const content = def.body === "" ? spec : body;
  const observed = def.observe?.(document.status);
  const hash = contentDigest([kind, group, cluster, namespace, name, labels, annotations, createdAt, content, observed]);
  const object: ConfigObject = {
    ...{ kind, group, version, namespace, name, labels, annotations, createdAt, generation, spec, hash },
    ...(cluster !== undefined && { cluster }),
    ...(observed !== undefined && { observed }),
  };
  def.validate(object, report);
  return isBroken() ? undefined : object;
}

/** Adds the object, and file and line of the field. The text is searched only now that something is wrong. */
function withPlaces(faults: readonly Omit<Problem, "object">[], raw: RawObject, object: ObjectRef): readonly Problem[] {
  const lineOf = lineFinder(raw);
  return faults.map((fault) => {
    const line = lineOf(fault.path);
    return { ...fault, object, ...(raw.origin.file !== undefined && { file: raw.origin.file }), ...(line !== undefined && { line }) };
  });
}
