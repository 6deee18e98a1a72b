/** One line of a difference: in both, only before, only after. */
export interface DiffLine {
  readonly mark: " " | "-" | "+";
  readonly text: string;
}

const CONTEXT = 3;

/** Beyond this many edits the texts have little in common: showing one after the other is as good, and takes no time. */
const MOST_EDITS = 2_000;

/**
 * The lines that differ between two indented texts (YAML), each with a few around it. A part that does not follow the one before begins
 * with the lines it stands below, so that one can tell where in a long text it is, and is then written without their indent.
 */
export function lineDiff(before: string, after: string): readonly string[] {
  const lines = diffLines(linesOf(before), linesOf(after));
  return partsToShow(lines).flatMap(([first, end]) => {
    const part = lines.slice(first, end);
    const indent = Math.min(...part.map(({ text }) => indentOf(text)));
    const above = linesAbove(lines, first, indent);
    return [...(above.length === 0 ? [] : [`@@ ${above.join(" / ")}`]), ...part.map(({ mark, text }) => `${mark} ${text.slice(indent)}`)];
  });
}

const linesOf = (text: string): readonly string[] => (text === "" ? [] : text.replace(/\n$/, "").split("\n"));

/** From where to where lines are shown. */
function partsToShow(lines: readonly DiffLine[]): readonly (readonly [number, number])[] {
  const parts: [number, number][] = [];
  for (const [index, { mark }] of lines.entries()) {
    if (mark === " ") continue;
    const [first, end] = [Math.max(0, index - CONTEXT), Math.min(lines.length, index + CONTEXT + 1)];
    const last = parts.at(-1);
    if (last !== undefined && first <= last[1]) last[1] = end;
    else parts.push([first, end]);
  }
  return parts;
}

/** The lines with less and less indent above one, outermost first. */
function linesAbove(lines: readonly DiffLine[], index: number, ownIndent: number): readonly string[] {
  const above: string[] = [];
  let indent = ownIndent;
  for (let at = index - 1; at >= 0 && indent > 0; at--) {
    const text = lines[at]?.text ?? "";
    if (indentOf(text) >= indent) continue;
    indent = indentOf(text);
    above.unshift(text.trim());
  }
  return above;
}

const indentOf = (text: string): number => text.length - text.trimStart().length;

/** A shortest edit from one list of lines to the other (Myers), after what begins and ends alike is set aside. */
export function diffLines(before: readonly string[], after: readonly string[]): readonly DiffLine[] {
  const shorter = Math.min(before.length, after.length);
  let head = 0;
  while (head < shorter && before[head] === after[head]) head += 1;
  let tail = 0;
  while (tail < shorter - head && before.at(-1 - tail) === after.at(-1 - tail)) tail += 1;
  const marked = (lines: readonly string[], mark: DiffLine["mark"]): readonly DiffLine[] => lines.map((text) => ({ mark, text }));
  const old = before.slice(head, before.length - tail);
  const now = after.slice(head, after.length - tail);
  const middle = shortestEdit(old, now) ?? [...marked(old, "-"), ...marked(now, "+")];
  return [...marked(before.slice(0, head), " "), ...middle, ...marked(before.slice(before.length - tail), " ")];
}

/** How far each diagonal got, one step of the search after the other. */
type Steps = readonly Int32Array[];

function shortestEdit(before: readonly string[], after: readonly string[]): readonly DiffLine[] | undefined {
  const most = Math.min(before.length + after.length, MOST_EDITS);
  const offset = most + 1;
  let reach = new Int32Array(2 * offset + 1);
  const steps: Int32Array[] = [];
  for (let edits = 0; edits <= most; edits++) {
    steps.push(reach.slice(offset - edits - 1, offset + edits + 2));
    const next = reach.slice();
    for (let diagonal = -edits; diagonal <= edits; diagonal += 2) {
      const down =
        diagonal === -edits || (diagonal !== edits && reachAt(reach, offset + diagonal - 1) < reachAt(reach, offset + diagonal + 1));
      let x = down ? reachAt(reach, offset + diagonal + 1) : reachAt(reach, offset + diagonal - 1) + 1;
      while (x < before.length && x - diagonal < after.length && before[x] === after[x - diagonal]) x += 1;
      next[offset + diagonal] = x;
      if (x >= before.length && x - diagonal >= after.length) return walkBack(steps, before, after);
    }
    reach = next;
  }
  return undefined;
}

const reachAt = (reach: Int32Array, index: number): number => reach[index] ?? 0;

/** Follows the search back from the end of both lists. Step `n` holds the diagonals from -n-1 to n+1. */
function walkBack(steps: Steps, before: readonly string[], after: readonly string[]): readonly DiffLine[] {
  const lines: DiffLine[] = [];
  let [x, y] = [before.length, after.length];
  for (let edits = steps.length - 1; edits >= 0; edits--) {
    const step = steps[edits];
    const at = (diagonal: number): number => step?.[diagonal + edits + 1] ?? 0;
    const diagonal = x - y;
    const down = diagonal === -edits || (diagonal !== edits && at(diagonal - 1) < at(diagonal + 1));
    const startX = edits === 0 ? 0 : down ? at(diagonal + 1) : at(diagonal - 1);
    const startY = edits === 0 ? 0 : startX - (down ? diagonal + 1 : diagonal - 1);
    const afterEdit = edits === 0 ? 0 : down ? startX : startX + 1;
    while (x > afterEdit) {
      lines.push({ mark: " ", text: before[x - 1] ?? "" });
      [x, y] = [x - 1, y - 1];
    }
    if (edits === 0) break;
    lines.push(down ? { mark: "+", text: after[y - 1] ?? "" } : { mark: "-", text: before[x - 1] ?? "" });
    [x, y] = [startX, startY];
  }
  return lines.reverse();
}
