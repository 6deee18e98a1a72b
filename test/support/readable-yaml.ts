import type { JsonValue } from "@bufbuild/protobuf";
import { Document, isAlias, isCollection, isPair, isScalar, visit } from "yaml";

const LINE_WIDTH = 160;
const FLOW_WIDTH = 130;

/** YAML for people: what fits on a line stands on one, and what stood above already is referred to by name. */
export function readableYaml(value: JsonValue): string {
  const known = new Map<string, JsonValue>();
  const top =
    Array.isArray(value) || typeof value !== "object" || value === null
      ? value
      : Object.fromEntries(Object.entries(value).map(([key, item]) => [key, parts(item, known)]));
  const document = new Document(top, { aliasDuplicateObjects: true });
  visit(document, {
    Collection(_, node) {
      if (node !== document.contents && widthOf(node) <= FLOW_WIDTH) node.flow = true;
    },
  });
  nameAnchors(document);
  return document.toString({ lineWidth: LINE_WIDTH, flowCollectionPadding: false });
}

/** Makes equal parts that would take more than a line the same object, which YAML then writes once. */
function interned(value: JsonValue, known: Map<string, JsonValue>): JsonValue {
  const copy = parts(value, known);
  const text = JSON.stringify(copy);
  if (typeof copy !== "object" || text.length <= FLOW_WIDTH) return copy;
  const first = known.get(text) ?? copy;
  known.set(text, first);
  return first;
}

function parts(value: JsonValue, known: Map<string, JsonValue>): JsonValue {
  if (Array.isArray(value)) return value.map((item) => interned(item, known));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, interned(item, known)]));
}

function widthOf(node: unknown): number {
  return isAlias(node)
    ? node.source.length + 1
    : isCollection(node)
      ? node.items.reduce<number>((sum, item) => sum + widthOf(item) + 2, 0)
      : isPair(node)
        ? widthOf(node.key) + widthOf(node.value) + 2
        : isScalar(node)
          ? String(node.value).length
          : 0;
}

/** Anchors called after the field they stand in, so that one more of them changes few lines. */
function nameAnchors(document: Document): void {
  const names = new Map<string, string>();
  const counts = new Map<string, number>();
  visit(document, {
    Collection(_, node, path) {
      if (node.anchor === undefined) return;
      const field = fieldOf(path);
      const count = (counts.get(field) ?? 0) + 1;
      counts.set(field, count);
      const name = count === 1 ? field : `${field}-${count}`;
      names.set(node.anchor, name);
      node.anchor = name;
    },
    Alias(_, alias) {
      alias.source = names.get(alias.source) ?? alias.source;
    },
  });
}

function fieldOf(path: readonly unknown[]): string {
  for (const step of path.toReversed()) if (isPair(step) && isScalar(step.key)) return String(step.key).replaceAll(/[^\w-]/g, "_");
  return "part";
}
