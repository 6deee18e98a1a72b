import { NO_LABELS } from "../base/labels.ts";
import { quote } from "../base/quote.ts";
import type { Report } from "./kind-def.ts";
import { isRecord, typeName } from "./parse/reading.ts";

/** What we keep of metadata. */
export interface Metadata {
  /** Undefined where there is none that could be used. */
  readonly name: string | undefined;
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly createdAt: number;
  readonly generation: number;
}

/** What metadata cannot say itself. */
export interface MetadataContext {
  readonly isNamespaced: boolean;
  readonly defaultNamespace: string;
}

const LONGEST_NAME = 253;
const LONGEST_LABEL = 63;
const SUBDOMAIN = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/;
const LABEL = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$/;

/** Reads metadata as Kubernetes does: names follow RFC 1123, fields we do not use pass unseen. */
export function readMetadata(json: unknown, report: Report, context: MetadataContext): Metadata {
  if (!isRecord(json))
    report(
      "document.not-an-object",
      ["metadata"],
      json === undefined || json === null ? "must be set" : `must be an object, not ${typeName(json)}`,
    );
  const metadata = isRecord(json) ? json : {};
  return {
    name: isRecord(json) ? readName(metadata.name, report) : undefined,
    namespace: context.isNamespaced ? readNamespace(metadata.namespace, report, context.defaultNamespace) : "",
    labels: readTexts(metadata.labels, "labels", report),
    annotations: readTexts(metadata.annotations, "annotations", report),
    createdAt: readTime(metadata.creationTimestamp, report),
    generation: readGeneration(metadata.generation, report),
  };
}

function readName(json: unknown, report: Report): string | undefined {
  const path = ["metadata", "name"];
  if (typeof json !== "string" || json === "") {
    report(
      "metadata.name",
      path,
      json === undefined || json === null || json === "" ? "must be set" : `must be a text, not ${typeName(json)}`,
    );
    return undefined;
  }
  if (json.length > LONGEST_NAME) report("metadata.name", path, `must have at most ${LONGEST_NAME} characters`);
  else if (!SUBDOMAIN.test(json)) report("metadata.name", path, `${quote(json)} must be lower-case letters, digits, dashes and dots`);
  return json.length > LONGEST_NAME ? undefined : json;
}

function readNamespace(json: unknown, report: Report, fallback: string): string {
  if (json === undefined || json === null || json === "") return fallback;
  const path = ["metadata", "namespace"];
  if (typeof json !== "string") report("metadata.name", path, `must be a text, not ${typeName(json)}`);
  else if (json.length > LONGEST_LABEL) report("metadata.name", path, `must have at most ${LONGEST_LABEL} characters`);
  else if (!LABEL.test(json)) report("metadata.name", path, `${quote(json)} must be lower-case letters, digits and dashes`);
  return typeof json === "string" && json.length <= LONGEST_LABEL ? json : fallback;
}

function readTexts(json: unknown, name: string, report: Report): Readonly<Record<string, string>> {
  if (json === undefined || json === null) return NO_LABELS;
  if (!isRecord(json)) {
    report("schema.wrong-type", ["metadata", name], `must be an object, not ${typeName(json)}`);
    return NO_LABELS;
  }
  const texts: Record<string, string> = {};
  for (const key of Object.keys(json)) {
    const value = json[key];
    if (typeof value !== "string") report("schema.wrong-type", ["metadata", name, key], `must be a text, not ${typeName(value)}`);
    else if (key !== "__proto__") texts[key] = value;
  }
  return texts;
}

/** YAML readers may turn a time into a Date already. */
function readTime(json: unknown, report: Report): number {
  if (json === undefined || json === null) return 0;
  const time = json instanceof Date ? json.getTime() : typeof json === "string" ? Date.parse(json) : Number.NaN;
  if (Number.isFinite(time)) return time;
  report("schema.wrong-type", ["metadata", "creationTimestamp"], "must be a time such as 2026-01-31T12:00:00Z");
  return 0;
}

function readGeneration(json: unknown, report: Report): number {
  if (json === undefined || json === null) return 0;
  if (typeof json === "number" && Number.isSafeInteger(json)) return json;
  report("schema.wrong-type", ["metadata", "generation"], `must be a whole number, not ${typeName(json)}`);
  return 0;
}
