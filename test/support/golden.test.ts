import { existsSync, readFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { tempDir } from "./cleanup.ts";
import { goldenCases, strayFolders } from "./golden.ts";
import { lineDiff } from "./line-diff.ts";
import { readableYaml } from "./readable-yaml.ts";

async function goldenDir(): Promise<string> {
  const root = await tempDir("golden-");
  await mkdir(join(root, "topic/one"), { recursive: true });
  await mkdir(join(root, "topic/gone"), { recursive: true });
  await writeFile(join(root, "topic/one.in.yaml"), "a: 1\n");
  await writeFile(join(root, "topic/one/out.yaml"), "a: 1\nb: 2\n");
  await writeFile(join(root, "topic/one/old.yaml"), "old\n");
  return root;
}

describe("golden files", () => {
  it("tell what differs, what is missing, and how to refresh them", async () => {
    const root = await goldenDir();
    const [one] = goldenCases(root);
    expect(one).toMatchObject({ topic: "topic", name: "one", input: "a: 1\n" });
    expect(() => one?.check({ "out.yaml": "a: 1\nb: 3\n", "new.yaml": "new\n" })).toThrow(
      /new\.yaml\n\+ new\n.*old\.yaml\n- old\n.*out\.yaml\n {2}a: 1\n- b: 2\n\+ b: 3\n.*GOLDEN=write npx vitest run test\/golden -t one/s,
    );
    expect(() => one?.check({ "out.yaml": "a: 1\nb: 2\n", "old.yaml": "old\n" })).not.toThrow();
    expect(strayFolders(root)).toEqual(["topic/gone"]);
  });

  it("are written, and strays deleted, when asked", async () => {
    const root = await goldenDir();
    vi.stubEnv("GOLDEN", "write");
    try {
      goldenCases(root)[0]?.check({ "out.yaml": "b: 3\n" });
      expect(strayFolders(root)).toEqual([]);
    } finally {
      vi.unstubAllEnvs();
    }
    expect(readFileSync(join(root, "topic/one/out.yaml"), "utf8")).toBe("b: 3\n");
    expect([existsSync(join(root, "topic/one/old.yaml")), existsSync(join(root, "topic/gone"))]).toEqual([false, false]);
  });
});

it("a difference shows changed lines with a few around them", () => {
  const lines = (changed: string): string => [..."abcdefgh"].map((line) => (line === "d" ? changed : line)).join("\n");
  expect(lineDiff(lines("d"), lines("x"))).toBe("  a\n  b\n  c\n- d\n+ x\n  e\n  f\n  g\n  …");
});

it("YAML says once what stands twice, and puts short things on one line", () => {
  const long = { text: "x".repeat(100), more: "y".repeat(100) };
  expect(readableYaml({ first: { part: long, short: { a: 1 } }, second: { part: long } })).toBe(
    `first:\n  part: &part\n    text: ${long.text}\n    more: ${long.more}\n  short: {a: 1}\nsecond: {part: *part}\n`,
  );
});
