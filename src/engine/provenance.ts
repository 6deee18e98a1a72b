import { asNode, InputNode, type QueryNode } from "./nodes.ts";
import type { InputRef } from "./types.ts";

/** The recorded reads below a node, each once, sorted by table, index and key. */
export function inputsBelow(root: QueryNode): readonly InputRef[] {
  const seen = new Set<QueryNode | InputNode>([root]);
  const refs = new Map<string, InputRef>();
  for (const node of seen) {
    // a set's iteration visits what is added on the way
    if (node instanceof InputNode) {
      const ref = refOf(node);
      refs.set(sortKey(ref), ref);
    } else {
      for (let link = node.deps; link !== undefined; link = link.nextDep) seen.add(asNode(link.dep));
    }
  }
  return [...refs].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, ref]) => ref);
}

function refOf(node: InputNode): InputRef {
  const { index, key } = node;
  const table = node.owner.name;
  switch (node.read) {
    case "row":
      return { table, key, read: node.value === undefined ? "absent" : "row" };
    case "has":
      return { table, key, read: node.value === true ? "row" : "absent" };
    case "list":
    case "all":
      return { table, index, key, read: "list" };
    case "keys":
    case "indexKeys":
      return { table, index, key, read: "keys" };
  }
}

function sortKey(ref: InputRef): string {
  return [ref.table, "index" in ref ? `1${ref.index}` : "0", ref.key, ref.read].join("\0");
}
