// Writes the reference pages and the manifests that are made from the code: `node tools/write-docs.ts`. A test compares them.
import { writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { COMMANDS } from "../src/cli/commands/index.ts";
import { referencePage } from "../src/cli/reference-page.ts";
import { PROBLEM_CODES } from "../src/config/problem-codes.ts";
import { MANIFESTS } from "../src/install/manifests.ts";
import { meshDocs } from "./mesh-schema.ts";

/** A page under docs/, or a file beside it, and what must stand in it. */
export interface GeneratedDoc {
  readonly file: string;
  readonly text: () => string;
}

/** All generated pages and manifests. */
export const GENERATED_DOCS: readonly GeneratedDoc[] = [
  { file: "problems.md", text: problemsDoc },
  { file: "istioctl.md", text: () => referencePage(COMMANDS) },
  ...Object.entries(meshDocs()).map(([path, text]) => ({ file: basename(path), text: () => text })),
  ...MANIFESTS.map(({ file, text }) => ({ file: `../deploy/${file}`, text })),
];

export const DOCS_FOLDER = join(import.meta.dirname, "../docs");

/** The page on problems: each code with its level and what it means. */
export function problemsDoc(): string {
  const rows = Object.entries(PROBLEM_CODES).map(([code, { level, about }]) => `| \`${code}\` | ${level} | ${about} |`);
  return [
    "# Problems",
    "",
    "Every fault that can be found in what a user wrote. An object with an error is left out, and its last good version stays in force; a warning changes nothing.",
    "`istioctl validate -o json` prints the code of each problem with file, line and field.",
    "",
    "| code | level | meaning |",
    "| --- | --- | --- |",
    ...rows,
    "",
  ].join("\n");
}

if (import.meta.main) for (const doc of GENERATED_DOCS) writeFileSync(join(DOCS_FOLDER, doc.file), doc.text());
