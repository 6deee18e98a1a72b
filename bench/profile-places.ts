import { readFileSync } from "node:fs";
import { SourceMap } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Frame, Spending, Spent } from "./inspector.ts";

/** Smaller shares are not worth a word. */
const SMALLEST_SHARE = 0.03;
/** So many functions are named. */
const NAMED = 3;
const IDLE = "(idle)";
const DIST = join(import.meta.dirname, "../dist");
/** What the script of a snapshot is called, wherever it was built; its map lies beside the snapshot. */
const SNAPSHOT_SCRIPT = /\/\.cache\/snapshot\/([^/]+)\.cjs$/;

/** Where work spends what it spends. */
export interface Places {
  /** Share of each folder of ours, each package, Node, the collector and the system, the largest first. */
  shares(spent: Spent): Readonly<Record<string, number>>;
  /** The functions that spend most themselves, each with its file and its share, in one line. */
  most(spent: Spent): string;
}

/** All that was spent, but for waiting. */
export const busy = (spent: Spent): number => spent.reduce((sum, { frame, value }) => sum + (frame.functionName === IDLE ? 0 : value), 0);

/** Reads the source maps of what has run, each once. */
export function createPlaces(): Places {
  const sourceOf = createSources();
  return {
    shares: (spent) =>
      Object.fromEntries(
        ranked(spent, ({ frame, within }) => placeOf(frame, sourceOf(within))).filter(([, share]) => share >= SMALLEST_SHARE),
      ),
    most(spent) {
      const functions = ranked(spent, ({ frame, within }) =>
        ENGINE_PLACES.has(frame.functionName) ? undefined : labelOf(frame, sourceOf(within)),
      );
      return functions
        .slice(0, NAMED)
        .map(([label, share]) => `${label} ${Math.round(share * 100)} %`)
        .join(", ");
    },
  };
}

/** What belongs together by `keyOf`, as shares of all; undefined belongs to nothing. */
function ranked(spent: Spent, keyOf: (spending: Spending) => string | undefined): readonly (readonly [key: string, share: number])[] {
  const sums = new Map<string, number>();
  for (const spending of spent) {
    const key = spending.frame.functionName === IDLE ? undefined : keyOf(spending);
    if (key !== undefined) sums.set(key, (sums.get(key) ?? 0) + spending.value);
  }
  const whole = Math.max(busy(spent), 1);
  return [...sums].map(([key, value]) => [key, value / whole] as const).sort(([, a], [, b]) => b - a);
}

/** What V8 calls by a name of its own. A map, since functions may be called anything, `toString` too. */
const ENGINE_PLACES: ReadonlyMap<string, string> = new Map([
  ["(garbage collector)", "collector"],
  ["(program)", "system"],
  ["(root)", "system"],
]);

interface Source {
  readonly path: string;
  readonly line: number;
}

/** Undefined is Node's own. */
function placeOf({ functionName }: Frame, source: Source | undefined): string {
  const own = ENGINE_PLACES.get(functionName);
  if (own !== undefined) return own;
  if (source === undefined) return "node";
  return packageOf(source.path) ?? /src\/([^/]+)\//.exec(source.path)?.[1] ?? "ours";
}

const packageOf = (path: string): string | undefined => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1];

function labelOf({ functionName, url }: Frame, source: Source | undefined): string {
  if (source === undefined) return `${functionName === "" ? "(anonymous)" : functionName} (${url.startsWith("node:") ? url : "node"})`;
  const file = packageOf(source.path) ?? /src\/(.+)$/.exec(source.path)?.[1] ?? "ours";
  return functionName === "" ? `(${file}:${source.line})` : `${functionName} (${file})`;
}

/** Tells of which source a frame is. */
function createSources(): (frame: Frame) => Source | undefined {
  const maps = new Map<string, SourceMap | undefined>();
  const mapOf = (path: string): SourceMap | undefined => {
    if (!maps.has(path)) maps.set(path, readMap(path));
    return maps.get(path);
  };
  return ({ url, lineNumber, columnNumber }) => {
    const path = url.startsWith("file:") ? fileURLToPath(url) : url;
    if (!path.startsWith("/")) return undefined;
    const entry = mapOf(path)?.findEntry(lineNumber, columnNumber);
    return entry !== undefined && "originalSource" in entry
      ? { path: entry.originalSource, line: entry.originalLine + 1 }
      : { path, line: lineNumber + 1 };
  };
}

function readMap(path: string): SourceMap | undefined {
  const program = SNAPSHOT_SCRIPT.exec(path)?.[1];
  try {
    const text = readFileSync(program === undefined ? `${path}.map` : join(DIST, `${program}.blob.map`), "utf8");
    return new SourceMap(JSON.parse(text) as ConstructorParameters<typeof SourceMap>[0]);
  } catch {
    return undefined;
  }
}
