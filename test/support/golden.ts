import { globSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { lineDiff } from "./line-diff.ts";

/** One golden case: an input file and the folder beside it with what came out. */
export interface GoldenCase {
  readonly topic: string;
  readonly name: string;
  readonly input: string;
  /** Compares the outputs, by file name, with those on disk; with `GOLDEN=write` puts them there and deletes strays. */
  check(outputs: Readonly<Record<string, string>>): void;
}

const INPUT = ".in.yaml";

/** Every `<topic>/<name>.in.yaml` below a directory, sorted. Adding a file adds a case. */
export function goldenCases(root: string): readonly GoldenCase[] {
  return globSync(`*/*${INPUT}`, { cwd: root })
    .sort()
    .map((file) => ({
      topic: dirname(file),
      name: basename(file, INPUT),
      input: readFileSync(join(root, file), "utf8"),
      check: (outputs) => checkFolder(join(root, file.slice(0, -INPUT.length)), outputs),
    }));
}

/** Folders with outputs whose input is gone; `GOLDEN=write` deletes them. */
export function strayFolders(root: string): readonly string[] {
  const wanted = new Set(globSync(`*/*${INPUT}`, { cwd: root }).map((file) => file.slice(0, -INPUT.length)));
  const stray = globSync("*/*/", { cwd: root })
    .map((folder) => folder.replace(/\/$/, ""))
    .filter((folder) => !wanted.has(folder));
  if (writing()) for (const folder of stray) rmSync(join(root, folder), { recursive: true });
  return writing() ? [] : stray;
}

const writing = (): boolean => process.env.GOLDEN === "write";

function checkFolder(folder: string, outputs: Readonly<Record<string, string>>): void {
  if (writing()) {
    writeFolder(folder, outputs);
    return;
  }
  const wanted = readFolder(folder);
  const files = [...new Set([...Object.keys(wanted), ...Object.keys(outputs)])].sort();
  const differences = files
    .filter((file) => wanted[file] !== outputs[file])
    .map((file) => `${file}\n${lineDiff(wanted[file] ?? "", outputs[file] ?? "")}`);
  if (differences.length === 0) return;
  const where = relative(process.cwd(), folder);
  throw new Error(
    `${where} differs (- on disk, + now):\n${differences.join("\n")}\nIf it should: GOLDEN=write npx vitest run test/golden -t ${basename(folder)}`,
  );
}

function writeFolder(folder: string, outputs: Readonly<Record<string, string>>): void {
  rmSync(folder, { recursive: true, force: true });
  if (Object.keys(outputs).length > 0) mkdirSync(folder, { recursive: true });
  for (const [file, text] of Object.entries(outputs)) writeFileSync(join(folder, file), text);
}

function readFolder(folder: string): Readonly<Record<string, string>> {
  const files = globSync("*", { cwd: folder }).length === 0 ? [] : readdirSync(folder);
  return Object.fromEntries(files.map((file) => [file, readFileSync(join(folder, file), "utf8")]));
}
