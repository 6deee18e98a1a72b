/** A list or an object that is being written. */
interface Level {
  readonly entries: Iterator<readonly [key: string | undefined, value: unknown]>;
  readonly end: string;
  readonly indent: string;
  isEmpty: boolean;
}

/**
 * The JSON of a value, indented as `JSON.stringify` does it, in small parts: who sends a large page can pause between them. What can be iterated over is written as a list and is
 * asked for its next entry only when that is written, so that not all of a large mesh is in memory at once.
 */
export function* jsonParts(root: unknown): Generator<string, void> {
  const levels: Level[] = [];
  const begin = (given: unknown): string => {
    const value = hasOwnJson(given) ? given.toJSON() : given;
    const indent = `${levels.at(-1)?.indent ?? ""}  `;
    if (isIterable(value)) levels.push({ entries: listEntries(value), end: "]", indent, isEmpty: true });
    else if (typeof value === "object" && value !== null) levels.push({ entries: objectEntries(value), end: "}", indent, isEmpty: true });
    else return JSON.stringify(value) ?? "null";
    return levels.at(-1)?.end === "]" ? "[" : "{";
  };
  try {
    yield begin(root);
    for (let level = levels.at(-1); level !== undefined; level = levels.at(-1)) yield step(level, levels, begin);
  } finally {
    for (const { entries } of levels) entries.return?.();
  }
}

/** Writes the next entry of a list or an object, or its end. */
function step(level: Level, levels: Level[], begin: (value: unknown) => string): string {
  const next = level.entries.next();
  const isFirst = level.isEmpty;
  if (next.done === true) {
    levels.pop();
    return isFirst ? level.end : `\n${level.indent.slice(2)}${level.end}`;
  }
  const [key, value] = next.value;
  level.isEmpty = false;
  return `${isFirst ? "" : ","}\n${level.indent}${key === undefined ? "" : `${JSON.stringify(key)}: `}${begin(value)}`;
}

const hasOwnJson = (value: unknown): value is { toJSON(): unknown } =>
  typeof value === "object" && value !== null && "toJSON" in value && typeof value.toJSON === "function";

const isIterable = (value: unknown): value is Iterable<unknown> => typeof value === "object" && value !== null && Symbol.iterator in value;

function* listEntries(list: Iterable<unknown>): Generator<readonly [undefined, unknown]> {
  for (const value of list) yield [undefined, value];
}

/** What JSON has no word for is left out. */
function* objectEntries(value: object): Generator<readonly [string, unknown]> {
  for (const [key, content] of Object.entries(value)) if (content !== undefined && typeof content !== "function") yield [key, content];
}
