import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { describe, expect, it } from "vitest";

const ROOT = resolve(import.meta.dirname, "../..");

/** Rows of the tables: lines that begin with `|`, without headings and rules. */
const rows = readFileSync(resolve(ROOT, "docs/from-istio.md"), "utf8")
  .split("\n")
  .filter((line, index, lines) => line.startsWith("| ") && !line.startsWith("| ---") && !(lines[index + 1] ?? "").startsWith("| ---"));

const testsIn = (row: string): readonly string[] => [...row.matchAll(/`((?:src|test|tools)\/[^`]+)`/g)].map(([, path]) => path ?? "");

describe("docs/from-istio.md", () => {
  it("has rows", () => expect(rows.length).toBeGreaterThan(20));

  it.for(rows)("%s", (row) => {
    const named = testsIn(row);
    expect(named).not.toEqual([]);
    expect(named.filter((path) => !/\.(test\.ts|in\.yaml)$/.test(path) || !existsSync(resolve(ROOT, path)))).toEqual([]);
  });
});
