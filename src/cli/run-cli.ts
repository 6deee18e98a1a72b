import { EdgeError, messageOf } from "../base/errors.ts";
import { readArguments, usageError } from "./arguments.ts";
import type { Command, Host, OutputFormat } from "./command.ts";
import { renderOutcome } from "./print/render-outcome.ts";
import { unknownCommand } from "./unknown-command.ts";
import { allFlags, commandUsage, hasOwnOutput, programUsage } from "./usage.ts";

/**
 * Runs one command line and resolves with the exit status: 0, 1 when something is wrong (also when a command ran well and found an invalid
 * document), 2 for bad usage. What goes wrong is one sentence on stderr.
 */
export async function runCli(words: readonly string[], commands: readonly Command[], host: Host): Promise<number> {
  const [name, ...rest] = words;
  if (name === "help" && rest.length > 0) return runCli([...rest, "--help"], commands, host);
  if (name === undefined || name === "--help" || name === "-h" || name === "help") {
    host.out(`${programUsage(commands)}\n`);
    return 0;
  }
  const found = findCommand(name === "--version" ? ["version", ...rest] : words, commands);
  if (found === undefined) return complain(host, unknownCommand(words, commands), 2);
  const { command } = found;
  try {
    return await runCommand(command, found.rest, host);
  } catch (error) {
    if (error instanceof EdgeError && error.code === "usage")
      return complain(host, `${error.message}; see \`istioctl ${command.name} --help\``, 2);
    const hint = error instanceof EdgeError && error.hint !== undefined ? `; ${error.hint}` : "";
    return complain(host, `${messageOf(error)}${hint}`, command.troubleStatus ?? 1);
  }
}

/** The command that the first words name, and the words after it. Some names are of several words (`x workload token`). */
function findCommand(words: readonly string[], commands: readonly Command[]) {
  for (const command of commands) {
    for (const name of [command.name, ...command.aliases]) {
      const length = name.split(" ").length;
      if (words.slice(0, length).join(" ") === name) return { command, rest: words.slice(length) };
    }
  }
  return undefined;
}

async function runCommand(command: Command, words: readonly string[], host: Host): Promise<number> {
  const args = readArguments(words, allFlags(command));
  if (args.has("help")) {
    host.out(`${commandUsage(command)}\n`);
    return 0;
  }
  const asked = hasOwnOutput(command) ? undefined : args.choice("output", command.outputs);
  const format: OutputFormat | undefined = asked ?? command.outputs[0];
  if (format === undefined) throw usageError("this command has no output");
  const outcome = await command.run(args, host);
  host.out(renderOutcome(outcome, format));
  return outcome.exitCode ?? 0;
}

function complain(host: Host, sentence: string, status: 1 | 2): number {
  host.err(`istioctl: ${sentence}\n`);
  return status;
}
