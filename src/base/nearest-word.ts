/** The word that was probably meant: one slip of the finger away in short words, at most two in longer ones. Undefined where none is. */
export function nearestWord(typed: string, words: readonly string[]): string | undefined {
  const most = typed.length < 6 ? 1 : 2;
  // What is much longer or shorter is not looked at: strangers choose how long it is.
  const alike = words.filter((word) => Math.abs(word.length - typed.length) <= most);
  const rated = alike.map((word) => ({ word, slips: slipsBetween(typed, word) })).sort((a, b) => a.slips - b.slips);
  return rated[0] !== undefined && rated[0].slips <= most ? rated[0].word : undefined;
}

/** Letters to add, to leave out or to replace until one word is the other (Levenshtein). */
function slipsBetween(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (const [index, letter] of [...a].entries()) {
    const next = [index + 1];
    for (const [column, other] of [...b].entries()) {
      const [above = 0, beside = 0, before = 0] = [row[column + 1], next[column], row[column]];
      next.push(Math.min(above + 1, beside + 1, before + (letter === other ? 0 : 1)));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}
