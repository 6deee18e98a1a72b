import { contentHash } from "../../base/hash.ts";
import { Interned } from "../../base/interned.ts";
import type { Node } from "../../gen/envoy/config/core/v3/base_pb.js";
import type { ExtensionList, ExtensionNeed } from "../../model/proxy.ts";

/** There is one list per build of Envoy: each proxy of that build says the same. */
const lists = new Interned<ExtensionList>();

/** The extensions a node says its Envoy has; undefined where it says nothing of them. */
export function extensionListOf({ extensions }: Pick<Node, "extensions">): ExtensionList | undefined {
  if (extensions.length === 0) return undefined;
  const pairs = extensions.flatMap(({ category, typeUrls }) => typeUrls.map((type) => ({ type, category })));
  const id = contentHash([...new Set(pairs.map(({ type, category }) => `${type} ${category}`))].sort().join("\n"));
  return lists.of(id, () => {
    const byType = Map.groupBy(pairs, ({ type }) => type);
    return { id, kinds: new Map([...byType].map(([type, some]) => [type, [...new Set(some.map(({ category }) => category))]])) };
  });
}

/** Messages that stand for themselves, whoever reads them: no extension has to be there for them. */
const PLAIN_TYPE = /^(google|xds|udpa|opentelemetry|envoy\.(config|type|data|service))\./;

/**
 * Whether a proxy's Envoy knows a type. Where any message may stand, one of an extension's package counts as known where the extension itself is:
 * lists name what extensions are configured with, not every message they use. Of an Envoy that says nothing, upstream's packages are believed.
 */
export function hasExtension(list: ExtensionList | undefined, { type, kind }: ExtensionNeed): boolean {
  if (PLAIN_TYPE.test(type)) return true;
  if (list === undefined) return type.startsWith("envoy.");
  const kinds = list.kinds.get(type);
  if (kind !== undefined) return kinds?.some((one) => one.startsWith(kind)) === true;
  if (kinds !== undefined) return true;
  const prefix = type.slice(0, type.lastIndexOf(".") + 1);
  for (const one of list.kinds.keys()) if (one.startsWith(prefix)) return true;
  return false;
}
