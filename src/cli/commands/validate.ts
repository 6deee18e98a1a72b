import { usageError } from "../arguments.ts";
import type { Command } from "../command.ts";
import type { DocumentRecord } from "../validate/document-record.ts";
import { STDIN } from "../validate/read-targets.ts";
import { validateTargets } from "../validate/validate-targets.ts";

export const validateCommand: Command = {
  name: "validate",
  aliases: ["v"],
  about: "Check configuration files with the rules of the control plane, before they are put in place",
  operands: "[FILE|DIRECTORY|-]...",
  flags: [
    { name: "filename", short: "f", value: "FILE|DIRECTORY|-", many: true, about: "what to check; may be repeated, `-` is standard input" },
  ],
  outputs: ["text", "json", "yaml"],
  notes: [
    "Directories are read as istiod reads etc/istio/conf: recursively, the first sub-directory is the namespace of objects that name none.",
    "mesh.yaml (with its includes) and networks.yaml are recognised by name; of a directory with etc/istio in it everything is checked.",
    "Exit status 1: at least one document is invalid. Warnings do not count.",
  ],
  async run(args, host) {
    const targets = [...args.list("filename"), ...args.operands];
    if (targets.length === 0) throw usageError("name files or directories to check, with -f or without");
    if (targets.filter((target) => target === STDIN).length > 1) throw usageError("standard input can be read only once");
    const records = await validateTargets(targets, host);
    return { data: records, text: validationText(records), exitCode: records.every(({ valid }) => valid) ? 0 : 1 };
  },
};

/** A line for each problem, in the form that editors and compilers share, and a count. */
export function validationText(records: readonly DocumentRecord[]): string {
  const lines = records.flatMap((record) =>
    record.problems.map(
      ({ line, level, path, message, code }) => `${record.file}:${line}: ${level}: ${path === "" ? "" : `${path}: `}${message} [${code}]`,
    ),
  );
  const invalid = records.filter(({ valid }) => !valid).length;
  const documents = records.length === 1 ? "1 document" : `${records.length} documents`;
  const verdict = invalid === 0 ? `${documents} checked, all valid` : `${documents} checked, ${invalid} invalid`;
  return [...lines, records.length === 0 ? "no documents found" : verdict].join("\n");
}
