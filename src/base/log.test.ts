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
    expect(line.slice(line.indexOf("\t"))).toBe(
      '\twarn\ttest\tit happened\tname=a\tcount="2"\tlist=[1]\terror=broken\tkey="[redacted]"\tabsent=undefined\n',
    );
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
