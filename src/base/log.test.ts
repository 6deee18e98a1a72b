import { describe, expect, it, vi } from "vitest";
import { createLog, type LogOptions } from "./log.ts";
import { Secret } from "./secret.ts";

function logged(options: Partial<LogOptions>, write: (log: ReturnType<typeof createLog>) => void): readonly string[] {
  const lines: string[] = [];
  const spy = vi.spyOn(process.stderr, "write").mockImplementation((text) => {
    lines.push(String(text));
    return true;
  });
  try {
    write(createLog({ scope: "test", ...options }));
  } finally {
    spy.mockRestore();
  }
  return lines;
}

const FIELDS = { name: "a", count: 2n, list: [1], error: new Error("broken"), key: new Secret("hidden"), absent: undefined };

describe("the log", () => {
  it("writes lines of time, level, scope, sentence and fields", () => {
    const [line = ""] = logged({}, (log) => log.warn(FIELDS, "it happened"));
    expect(line.slice(line.indexOf("\t"))).toBe('\twarn\ttest\tit happened\tname=a\tcount="2"\tlist=[1]\terror=broken\tkey="[redacted]"\n');
  });

  it("stays one line, whatever a stranger puts into a name", () => {
    const [line = ""] = logged({}, (log) => log.info({ node: "a\n2026-01-01\terror\tforged\u001b[2J" }, "it\ncame"));
    expect(line.slice(line.indexOf("\t"))).toBe("\tinfo\ttest\tit\\ncame\tnode=a\\n2026-01-01\\u0009error\\u0009forged\\u001b[2J\n");
  });

  it("writes records where asked", () => {
    const [line = ""] = logged({ json: true }, (log) => log.error(FIELDS, "it happened"));
    expect(JSON.parse(line)).toMatchObject({
      level: 50,
      scope: "test",
      name: "a",
      count: "2",
      error: "broken",
      key: "[redacted]",
      msg: "it happened",
    });
  });

  it("leaves out what is below its level", () => {
    expect(
      logged({ level: "warn" }, (log) => {
        log.debug("a");
        log.info("b");
        log.warn("c");
        log.error("d");
      }).map((line) => line.trim().split("\t").at(-1)),
    ).toEqual(["c", "d"]);
  });
});
