import type { Command, Flag } from "./command.ts";

const HELP: Flag = { name: "help", short: "h", about: "show this" };

/** The flags of a command with those that every command has. */
export const allFlags = (command: Command): readonly Flag[] => [
  ...command.flags,
  ...(hasOwnOutput(command) ? [] : [outputFlag(command)]),
  HELP,
];

/** Whether `-o` of this command names a place, as in Istio's istioctl, and not a format. */
export const hasOwnOutput = ({ flags }: Command): boolean => flags.some(({ name }) => name === "output");

const outputFlag = ({ outputs: [first, ...others] }: Command): Flag => ({
  name: "output",
  short: "o",
  value: "FORMAT",
  about: `${[first, ...others].join(", ")} (default ${first})`,
});

/** `istioctl validate --help`. */
export function commandUsage(command: Command): string {
  const flags = allFlags(command).map((flag): [string, string] => [flagText(flag), flag.about]);
  return [
    `${command.about}.`,
    "",
    `Usage: ${["istioctl", command.name, command.operands, "[flags]"].filter((word) => word !== "").join(" ")}`,
    ...(command.aliases.length > 0 ? [`Also: ${command.aliases.join(", ")}`] : []),
    "",
    "Flags:",
    ...columns(flags),
    ...(command.notes === undefined ? [] : ["", ...command.notes]),
  ].join("\n");
}

/** `istioctl --help`. */
export function programUsage(commands: readonly Command[]): string {
  return [
    "istioctl looks into a mesh, checks its configuration and starts its proxies.",
    "",
    "Usage: istioctl COMMAND [flags]",
    "",
    "Commands:",
    ...columns(commands.map((command): [string, string] => [[command.name, ...shortNames(command)].join(", "), command.about])),
    "",
    "`istioctl COMMAND --help` says more. Exit status: 0 all is well, 1 something is wrong, 2 bad usage (of diff: see there).",
  ].join("\n");
}

/** Longer ones are in the command's own help: here they would push everything else to the right. */
const shortNames = ({ aliases }: Command): readonly string[] => aliases.filter((name) => !name.includes(" "));

function flagText({ name, short, value }: Flag): string {
  return `${short === undefined ? "    " : `-${short}, `}--${name}${value === undefined ? "" : ` ${value}`}`;
}

function columns(rows: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`);
}
