import { NOTHING } from "./bucket.ts";
import type { InputTable, TableReads } from "./input-table.ts";
import type { InputNode } from "./nodes.ts";
import { mergeKeys, sameItems } from "./sorted-keys.ts";

/** How a set of keys differs from the base. */
interface KeyChanges {
  readonly added: Set<string>;
  readonly removed: Set<string>;
}

/**
 * One table with the changes of an overlay on top. Whatever no change touches is the very array of the base; the rest
 * is made once per overlay.
 */
export class TableView implements TableReads<unknown> {
  readonly #table: InputTable<unknown>;
  /** Rows that differ from the base; `undefined` where the overlay deletes. */
  readonly #rows: ReadonlyMap<string, unknown>;
  readonly #presence: KeyChanges = { added: new Set(), removed: new Set() };
  /** Index → index keys under which a changed row stands or stood. */
  readonly #places = new Map<string, Map<string, KeyChanges>>();
  readonly #lists = new Map<string, readonly unknown[]>();
  readonly #keys = new Map<string, readonly string[]>();
  readonly #indexKeys = new Map<string, readonly string[]>();
  #all: readonly unknown[] | undefined;

  constructor(table: InputTable<unknown>, changes: ReadonlyMap<string, unknown>) {
    this.#table = table;
    this.#rows = new Map([...changes].filter(([key, value]) => !table.sameRow(table.row(key), value)));
    for (const [key, value] of this.#rows) {
      if (value === undefined) this.#presence.removed.add(key);
      else if (table.row(key) === undefined) this.#presence.added.add(key);
    }
    for (const index of table.indexes()) {
      const places = new Map<string, KeyChanges>();
      for (const [key, value] of this.#rows) {
        const { before, after } = index.move(key, table.row(key), value);
        for (const at of before) if (!after.has(at)) place(places, at).removed.add(key);
        for (const at of after) if (!before.has(at)) place(places, at).added.add(key);
        for (const at of after) place(places, at);
      }
      this.#places.set(index.name, places);
    }
  }

  get(key: string): unknown {
    return this.#rows.has(key) ? this.#rows.get(key) : this.#table.row(key);
  }

  has(key: string): boolean {
    return this.get(key) !== undefined;
  }

  list(index: string, key: string): readonly unknown[] {
    const base = this.#table.index(index);
    if (this.#places.get(index)?.has(key) !== true) return base.values(key);
    return memo(this.#lists, `${index}\0${key}`, () => this.#valuesOf(this.keys(index, key)));
  }

  keys(index: string, key: string): readonly string[] {
    const base = this.#table.index(index).keys(key);
    const changes = this.#places.get(index)?.get(key);
    if (changes === undefined) return base;
    return memo(this.#keys, `${index}\0${key}`, () => changed(base, changes));
  }

  indexKeys(index: string): readonly string[] {
    const base = this.#table.index(index).indexKeys();
    return memo(this.#indexKeys, index, () => {
      const keys = new Set(base);
      for (const at of this.#places.get(index)?.keys() ?? []) {
        if (this.keys(index, at).length > 0) keys.add(at);
        else keys.delete(at);
      }
      const sorted = [...keys].sort();
      return sameItems(base, sorted) ? base : sorted;
    });
  }

  all(): readonly unknown[] {
    if (this.#rows.size === 0) return this.#table.allRows();
    this.#all ??= this.#valuesOf(changed(this.#table.allKeys(), this.#presence));
    return this.#all;
  }

  /** The recorded reads whose answer the overlay changes. Those that are not up to date may be missing. */
  touched(): readonly InputNode[] {
    if (this.#rows.size === 0) return [];
    return this.#table.nodesAt(this.#rows.keys(), this.#places).filter((node) => {
      const now = this.#read(node);
      return now !== node.value && !this.#table.sameInput(node, node.value, now);
    });
  }

  #read(node: InputNode): unknown {
    switch (node.read) {
      case "row":
        return this.get(node.key);
      case "has":
        return this.has(node.key);
      case "list":
        return this.list(node.index, node.key);
      case "keys":
        return this.keys(node.index, node.key);
      case "indexKeys":
        return this.indexKeys(node.index);
      case "all":
        return this.all();
    }
  }

  #valuesOf(keys: readonly string[]): readonly unknown[] {
    return keys.length === 0 ? NOTHING : keys.map((key) => this.get(key));
  }
}

function place(places: Map<string, KeyChanges>, at: string): KeyChanges {
  return memo(places, at, () => ({ added: new Set(), removed: new Set() }));
}

function changed(base: readonly string[], { added, removed }: KeyChanges): readonly string[] {
  return added.size === 0 && removed.size === 0 ? base : mergeKeys(base, added, removed);
}

function memo<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const known = map.get(key);
  if (known !== undefined) return known;
  const made = make();
  map.set(key, made);
  return made;
}
