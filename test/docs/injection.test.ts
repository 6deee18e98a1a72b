import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { ANNOTATION, LABEL } from "../../src/inject/annotations.ts";
import { TEMPLATE_FUNCTIONS } from "../../src/inject/template/template-functions.ts";
import { BUILT_IN_TEMPLATES } from "../../src/inject/templates/index.ts";

const page = readFileSync(resolve(import.meta.dirname, "../../docs/injection.md"), "utf8");
const rows = page.split("\n").filter((line) => line.startsWith("| `"));
const isTold = (name: string): boolean => rows.some((row) => (row.split(" | ")[0] ?? "").includes(`\`${name}\``));

const FEATURES = resolve(import.meta.dirname, "../../../shared/conformance/features");
const namesIn = (file: string): readonly string[] =>
  (JSON.parse(readFileSync(resolve(FEATURES, file), "utf8")) as readonly { readonly name: string }[]).map(({ name }) => name);

describe("docs/injection.md", () => {
  it("tells of every annotation and label that injection knows", () => {
    const known = [...Object.values(ANNOTATION), ...Object.values(LABEL).filter((label) => label !== LABEL.tunnel)];
    expect(known.filter((name) => !isTold(name))).toEqual([]);
  });

  it.skipIf(!existsSync(FEATURES))("tells of every annotation and label of Istio (skipped where ../shared is not there)", () => {
    expect([...namesIn("annotations.json"), ...namesIn("labels.json")].filter((name) => !isTold(name))).toEqual([]);
  });

  it("lists the templates and functions there are", () => {
    const [, functions = ""] = /Functions:\n\n(.*)\.\n/.exec(page) ?? [];
    expect(functions.split(", ").sort()).toEqual(["and", "or", ...Object.keys(TEMPLATE_FUNCTIONS)].map((name) => `\`${name}\``).sort());
    expect(Object.keys(BUILT_IN_TEMPLATES).filter((name) => !page.includes(`\`${name}\``))).toEqual([]);
  });
});
