import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { tempDir } from "../test/support/cleanup.ts";
import { checkSizes } from "./check-sizes.ts";

const blank = (lines: number): string => "\n".repeat(lines);

it("no file and no function is larger than CONTRIBUTING.md allows", () => {
  expect(checkSizes(process.cwd(), ["src", "bench", "tools", "test"])).toEqual([]);
});

it("names what is larger, by its own count, and leaves tests and generated code alone", async () => {
  const root = await tempDir();
  await mkdir(join(root, "src/gen"), { recursive: true });
  const put = (file: string, text: string): Promise<void> => writeFile(join(root, "src", file), text);
  await put("gen/made.ts", blank(500));
  await put("long.ts", `${blank(399)}// The last line.\n// One more.\n`);
  await put(
    "full.mjs",
    `const inner = () => {${blank(59)}};\nfunction fits() {${blank(59)}}\nexport function outer() {\n  const nested = () => {${blank(60)}};\n}\n`,
  );
  await put(
    "wide.ts",
    "export interface Wide {\n  call(a: 1, b: 2, c: 3, d: 4): void;\n}\nclass One {\n  constructor(a, b, ...rest) {}\n}\n",
  );
  await put("it.test.ts", `it.each(rows)("passes", (a, b, c, d) => {${blank(99)}});\nrun("is no test", (a, b, c, d) => {});\n`);
  expect(checkSizes(root, ["src"])).toEqual([
    { place: "src/full.mjs:121", name: "outer", what: "lines of a function", count: 63 },
    { place: "src/full.mjs:122", name: "nested", what: "lines of a function", count: 61 },
    { place: "src/it.test.ts:101", name: "(without a name)", what: "parameters", count: 4 },
    { place: "src/long.ts", name: "src/long.ts", what: "lines of a file", count: 401 },
    { place: "src/wide.ts:2", name: "call", what: "parameters", count: 4 },
  ]);
});
