import { describe, expect, it } from "vitest";
import { messageOf } from "./errors.ts";

describe("what was thrown, as text", () => {
  it("is what it says, or what each of several faults says", () => {
    expect(messageOf(new Error("no room"))).toBe("no room");
    expect(messageOf("no error")).toBe("no error");
    expect(messageOf(new AggregateError([new Error("a"), new Error("b"), new Error("a")]))).toBe("a; b");
    expect(messageOf(new AggregateError([new Error("a")], "both failed"))).toBe("both failed");
  });
});
