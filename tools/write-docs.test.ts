import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { DOCS_FOLDER, GENERATED_DOCS } from "./write-docs.ts";

for (const doc of GENERATED_DOCS) {
  it(`docs/${doc.file} says what the code says (else run: node tools/write-docs.ts)`, () => {
    expect(readFileSync(join(DOCS_FOLDER, doc.file), "utf8")).toBe(doc.text());
  });
}
