import { nearestWord } from "../base/nearest-word.ts";
import type { Command } from "./command.ts";

/** What is said of words that name no command: which ones begin so, which one was probably meant, or where they are listed. */
export function unknownCommand(words: readonly string[], commands: readonly Command[]): string {
  const typed = typedName(words, commands);
  const within = commands.filter((command) => namesOf(command).some((name) => name.startsWith(`${typed} `)));
  if (within.length > 0) return `${JSON.stringify(typed)} is the beginning of ${listed(within)}; say which`;
  const near = nearestWord(typed, commands.flatMap(namesOf));
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
