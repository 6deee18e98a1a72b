/** Test support: an engine with one indexed table, and a log of what was computed. */
import { createEngine, type Query } from "./index.ts";

/** A row: its namespace and a number. */
export interface Item {
  readonly ns: string;
  readonly n: number;
}

/** `define` makes a query that logs its runs; `runsOf` gives what `fn` made run. */
export function itemEngine(recheck = false) {
  const engine = createEngine({ recheck });
  const items = engine.table<Item>({
    name: "items",
    indexes: { ns: (item) => [item.ns], odd: (item) => (item.n % 2 === 1 ? ["yes"] : []) },
  });
  const ran: string[] = [];
  const define = <V>(name: string, compute: (key: string) => V): Query<string, V> =>
    engine.query({
      name,
      compute(key: string) {
        ran.push(`${name}(${key})`);
        return compute(key);
      },
    });
  const runsOf = (fn: () => unknown): readonly string[] => {
    ran.length = 0;
    fn();
    return ran.slice();
  };
  return { engine, items, define, runsOf };
}
