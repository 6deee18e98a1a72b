import { contentHash } from "../../base/hash.ts";
import { ownText } from "../../base/shared-text.ts";
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
  /** Filled while reading. */
  readonly seen?: SeenDocuments;
  /** Documents may keep the whole text in memory as what they were written as: right where all of them will, and none is replaced alone. */
  readonly sharesText?: boolean;
}

/** Of a longer text it would be too much for the sake of a few documents in it. */
const LONGEST_SHARED = 64 * 1024;

/** What was seen of a text: the shapes of its documents, to be passed as `known` next time, and how many there are. */
export interface SeenDocuments {
  readonly shapes: Map<string, DocumentShape>;
  documents: number;
}

/** Of a text that has not been read yet. */
export const nothingSeen = (): SeenDocuments => ({ shapes: new Map(), documents: 0 });

/** By digest, what parsing a document brought, without the content: a few bytes instead of a second copy of the configuration. */
export type DocumentShapes = ReadonlyMap<string, DocumentShape>;

export interface DocumentShape {
  /** For each object in the document, the lines above it. */
  readonly lines: readonly number[];
  readonly fault?: string;
}

/** The shape that nearly all documents have. */
export const ONE_OBJECT: DocumentShape = { lines: [0] };

/**
 * Reads a text of one or many documents into raw objects, in order. A generator, so that the caller may rest between documents.
 * A document that cannot be read yields one object with a `fault`, at the line of the fault.
 */
export function* readDocuments(text: string, from: TextOrigin, options: ReadOptions = {}): Generator<RawObject, void> {
  let index = 0;
  const mayShare = options.sharesText === true && text.length <= LONGEST_SHARED;
  for (const document of splitDocuments(text)) {
    const digest = contentHash(document.text);
    const known = options.known?.get(digest);
    const parsed = known === undefined ? parseDocument(document.text, options.limits) : undefined;
    const shape = known ?? shapeOf(parsed ?? NOTHING);
    if (options.seen !== undefined) {
      options.seen.shapes.set(digest, shape);
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
      const isAll = shape.lines.length === 1;
      const partDigest = isAll ? digest : `${digest}/${part}`;
      const written = (): string | undefined => (isAll ? (mayShare ? document.text : ownText(document.text)) : undefined);
      if (shape.fault !== undefined) yield { ...place, content: undefined, fault: shape.fault, digest };
      else if (parsed === undefined)
        yield unchanged({ ...place, digest: partDigest }, written, () => partOf(parseDocument(document.text, options.limits), part));
      else yield { ...place, digest: partDigest, ...judgeable(partOf(parsed, part)), written: written() };
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
function unchanged(
  place: Omit<RawObject, "content" | "written">,
  written: () => string | undefined,
  parse: () => DocumentPart | undefined,
): RawObject {
  return {
    ...place,
    get written() {
      return written();
    },
    get content(): unknown {
      return parse()?.content;
    },
  };
}

function shapeOf(parsed: ParsedDocument): DocumentShape {
  if ("parts" in parsed) {
    const lines = parsed.parts.map((part) => part.lineOffset);
    return lines.length === 1 && lines[0] === 0 ? ONE_OBJECT : { lines };
  }
  return { lines: [parsed.lineOffset], fault: parsed.fault };
}

const originOf = (from: TextOrigin, line: number) => ({ source: from.source, file: from.file, line });

const namespaceOf = (from: TextOrigin) => (from.defaultNamespace === undefined ? {} : { defaultNamespace: from.defaultNamespace });
