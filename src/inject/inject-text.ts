import { load } from "js-yaml";
import { stringify } from "yaml";
import { parseDocument } from "../config/documents/parse-document.ts";
import { splitDocuments, type TextDocument } from "../config/documents/split-documents.ts";
import { KUBERNETES_YAML } from "../config/documents/yaml-schema.ts";
import { type InjectedObject, injectObject, type ObjectContext } from "./inject-object.ts";
import type { InjectionSettings } from "./injection-request.ts";

/** A file with the sidecar in all its workloads. */
export interface InjectedText {
  readonly text: string;
  readonly notes: readonly string[];
  /** Each with the line of its document. Where there is one, the text is not to be used. */
  readonly faults: readonly string[];
}

/** Injects the workloads of a file of YAML or JSON documents. Only documents that change are written anew; all other text stays as it is. */
export function injectText(text: string, settings: InjectionSettings, context: ObjectContext): InjectedText {
  const lineStarts = startsOfLines(text);
  const notes: string[] = [];
  const faults: string[] = [];
  const pieces: string[] = [];
  let at = 0;
  for (const document of splitDocuments(text)) {
    const result = injectDocument(document, settings, context);
    notes.push(...result.notes);
    faults.push(...result.faults.map((fault) => `line ${document.line}: ${fault}`));
    if (result.written === undefined) continue;
    const start = lineStarts[document.line - 1] ?? 0;
    pieces.push(text.slice(at, start), result.written);
    at = start + document.text.length;
  }
  return { text: pieces.join("") + text.slice(at), notes, faults };
}

interface WrittenDocument extends Pick<InjectedObject, "notes" | "faults"> {
  /** Undefined where the document stays as it is. */
  readonly written: string | undefined;
}

function injectDocument({ text }: TextDocument, settings: InjectionSettings, context: ObjectContext): WrittenDocument {
  const parsed = parseDocument(text);
  if ("fault" in parsed) return { written: undefined, notes: [], faults: [parsed.fault] };
  const object = parsed.parts.length === 0 ? undefined : load(text, { schema: KUBERNETES_YAML });
  const { object: changed, notes, faults } = injectObject(object, settings, context);
  const marker = text.startsWith("---") ? "---\n" : "";
  const written =
    changed === object ? undefined : marker + stringify(changed, { version: "1.1", lineWidth: 0, aliasDuplicateObjects: false });
  return { written, notes, faults };
}

function startsOfLines(text: string): readonly number[] {
  const starts = [0];
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) starts.push(at + 1);
  return starts;
}
