const CONTEXT = 3;
const LONGEST_DIFF = 120;

/** The lines that differ, each with a few around it. */
export function lineDiff(before: string, after: string): string {
  const lines = changes(before.split("\n"), after.split("\n"));
  const near = (index: number): boolean => lines.slice(Math.max(0, index - CONTEXT), index + CONTEXT + 1).some(({ mark }) => mark !== " ");
  const shown: string[] = [];
  for (const [index, { mark, text }] of lines.entries()) {
    if (near(index)) shown.push(`${mark} ${text}`);
    else if (shown.length > 0 && shown.at(-1) !== "  …") shown.push("  …");
  }
  return shown.length <= LONGEST_DIFF
    ? shown.join("\n")
    : [...shown.slice(0, LONGEST_DIFF), `  … ${shown.length - LONGEST_DIFF} more lines`].join("\n");
}

interface DiffLine {
  readonly mark: " " | "-" | "+";
  readonly text: string;
}

/** A shortest edit by the longest common subsequence, after what begins and ends alike is set aside. */
function changes(before: readonly string[], after: readonly string[]): readonly DiffLine[] {
  const alike = (from: (index: number) => readonly [string | undefined, string | undefined], limit: number): number => {
    let count = 0;
    while (count < limit && from(count)[0] === from(count)[1]) count += 1;
    return count;
  };
  const head = alike((index) => [before[index], after[index]], Math.min(before.length, after.length));
  const tail = alike((index) => [before.at(-1 - index), after.at(-1 - index)], Math.min(before.length, after.length) - head);
  const same = (lines: readonly string[]): readonly DiffLine[] => lines.map((text) => ({ mark: " ", text }));
  const middle = edit(before.slice(head, before.length - tail), after.slice(head, after.length - tail));
  return [...same(before.slice(0, head)), ...middle, ...same(before.slice(before.length - tail))];
}

function edit(before: readonly string[], after: readonly string[]): readonly DiffLine[] {
  const common = Array.from({ length: before.length + 1 }, () => new Uint32Array(after.length + 1));
  const at = (row: number, column: number): number => common[row]?.[column] ?? 0;
  for (let row = before.length - 1; row >= 0; row--) {
    const line = common[row];
    if (line === undefined) continue;
    for (let column = after.length - 1; column >= 0; column--) {
      line[column] = before[row] === after[column] ? at(row + 1, column + 1) + 1 : Math.max(at(row + 1, column), at(row, column + 1));
    }
  }
  const lines: DiffLine[] = [];
  let [row, column] = [0, 0];
  while (row < before.length || column < after.length) {
    const [old, now] = [before[row], after[column]];
    if (old !== undefined && old === now) {
      lines.push({ mark: " ", text: old });
      [row, column] = [row + 1, column + 1];
    } else if (old !== undefined && (now === undefined || at(row + 1, column) >= at(row, column + 1))) {
      lines.push({ mark: "-", text: old });
      row += 1;
    } else {
      lines.push({ mark: "+", text: now ?? "" });
      column += 1;
    }
  }
  return lines;
}
