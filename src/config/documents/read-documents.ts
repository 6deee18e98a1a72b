import { contentHash } from "../../base/hash.ts";
import type { RawObject } from "../object.ts";
import type { DocumentLimits } from "./document-limits.ts";
import { type DocumentPart, type ParsedDocument, parseDocument } from "./parse-document.ts";
import { splitDocuments } from "./split-documents.ts";

/** Where a text comes from and how its documents are named. */
export interface TextOrigin {
  readonly source: string;
  /** Path shown to people. */
  readonly file: string;
  /** Path below the source's directory: the scope of a `replace`. */
  readonly scope: string;
  readonly defaultNamespace?: string;
}

export interface ReadOptions {
  readonly limits?: DocumentLimits;
  /** Shapes of the documents this text had before: a document found there is parsed again only if somebody asks for its content. */
  readonly known?: Pick<DocumentShapes, "get">;
  /** Filled while reading: the shapes of this text, to be passed as `known` next time, and how many documents it has. */
  readonly seen?: { readonly shapes: Map<string, DocumentShape>; documents: number };
}

/** By digest, what parsing a document brought, without the content: a few bytes instead of a second copy of the configuration. */
export type DocumentShapes = ReadonlyMap<string, DocumentShape>;

export interface DocumentShape {
  /** For each object in the document, the lines above it. */
  readonly lines: readonly number[];
  readonly fault?: string;
  /** Content of the one object in it as JSON, where it is at hand. */
  readonly json?: string;
}

/**
 * Reads a text of one or many documents into raw objects, in order. A generator, so that the caller may rest between documents.
 * A document that cannot be read yields one object with a `fault`, at the line of the fault.
 */
export function* readDocuments(text: string, from: TextOrigin, options: ReadOptions = {}): Generator<RawObject, void> {
  let index = 0;
  for (const document of splitDocuments(text)) {
    const digest = contentHash(document.text);
    const known = options.known?.get(digest);
    const parsed = known === undefined ? parseDocument(document.text, options.limits) : undefined;
    const shape = known ?? shapeOf(parsed ?? NOTHING);
    if (options.seen !== undefined) {
      options.seen.shapes.set(digest, shape.json === undefined ? shape : { lines: shape.lines });
      options.seen.documents += 1;
    }
    for (const [part, line] of shape.lines.entries()) {
      const place = {
        origin: originOf(from, document.line + line),
        slot: `${from.scope}#${index}`,
        scope: from.scope,
        ...namespaceOf(from),
      };
      index += 1;
      const partDigest = shape.lines.length === 1 ? digest : `${digest}/${part}`;
      if (shape.fault !== undefined) yield { ...place, content: undefined, fault: shape.fault, digest };
      else if (parsed === undefined)
        yield unchanged({ ...place, digest: partDigest, ...(shape.json !== undefined && { json: shape.json }) }, () =>
          partOf(parseDocument(document.text, options.limits), part),
        );
      else yield { ...place, digest: partDigest, ...judgeable(partOf(parsed, part)) };
    }
  }
}

/** The raw object that says that a whole text cannot be read. */
export function unreadableText(from: TextOrigin, fault: string): RawObject {
  return {
    origin: { source: from.source, file: from.file },
    slot: `${from.scope}#0`,
    scope: from.scope,
    content: undefined,
    fault,
    digest: contentHash(fault),
    ...namespaceOf(from),
  };
}

/** How many documents a text holds, without parsing it. */
export const countDocuments = (text: string): number => splitDocuments(text).length;

const NOTHING: ParsedDocument = { parts: [] };

const partOf = (parsed: ParsedDocument, part: number): DocumentPart | undefined => ("parts" in parsed ? parsed.parts[part] : undefined);

const judgeable = (part: DocumentPart | undefined): Pick<RawObject, "content" | "text"> => ({
  content: part?.content,
  ...(part?.text !== undefined && { text: part.text }),
});

/** A document that was delivered before: whoever remembers its digest never asks for the content. */
function unchanged(place: Omit<RawObject, "content">, parse: () => DocumentPart | undefined): RawObject {
  return {
    ...place,
    get content(): unknown {
      return place.json === undefined ? parse()?.content : (JSON.parse(place.json) as unknown);
    },
  };
}

function shapeOf(parsed: ParsedDocument): DocumentShape {
  if ("parts" in parsed) return { lines: parsed.parts.map((part) => part.lineOffset) };
  return { lines: [parsed.lineOffset], fault: parsed.fault };
}

const originOf = (from: TextOrigin, line: number) => ({ source: from.source, file: from.file, line });

const namespaceOf = (from: TextOrigin) => (from.defaultNamespace === undefined ? {} : { defaultNamespace: from.defaultNamespace });
