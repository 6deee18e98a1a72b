import type { Command } from "./command.ts";

/** What is said of words that name no command: which ones begin so, which one was probably meant, or where they are listed. */
export function unknownCommand(words: readonly string[], commands: readonly Command[]): string {
  const typed = typedName(words, commands);
  const within = commands.filter((command) => namesOf(command).some((name) => name.startsWith(`${typed} `)));
  if (within.length > 0) return `${JSON.stringify(typed)} is the beginning of ${listed(within)}; say which`;
  const near = nearest(typed, commands.flatMap(namesOf));
  const hint = near === undefined ? "`istioctl --help` lists them" : `did you mean \`${near}\`?`;
  return `there is no command ${JSON.stringify(typed)}; ${hint}`;
}

const namesOf = ({ name, aliases }: Command): readonly string[] => [name, ...aliases];

const listed = (commands: readonly Command[]): string => commands.map(({ name }) => `\`${name}\``).join(" and ");

/** What was typed before the first flag; one word, unless it begins like a command of several. */
function typedName([first = "", ...rest]: readonly string[], commands: readonly Command[]): string {
  if (!commands.flatMap(namesOf).some((name) => name.startsWith(`${first} `))) return first;
  const end = rest.findIndex((word) => word.startsWith("-"));
  return [first, ...(end === -1 ? rest : rest.slice(0, end))].join(" ");
}

/** A slip of the finger or two; in short words one. */
function nearest(typed: string, names: readonly string[]): string | undefined {
  const most = typed.length < 6 ? 1 : 2;
  const rated = names.map((name) => ({ name, slips: slipsBetween(typed, name) })).sort((a, b) => a.slips - b.slips);
  return rated[0] !== undefined && rated[0].slips <= most ? rated[0].name : undefined;
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
