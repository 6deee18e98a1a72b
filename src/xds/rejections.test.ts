import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { offendersIn } from "./rejections.ts";

describe("offendersIn", () => {
  const names = ["outbound|80||a.b", "outbound|80||a.b.c", "virtualInbound", "80", "8080", "10.0.0.1:80", "0.0.0.0_80", "inbound|80||"];
  const table: readonly [text: string, blamed: readonly string[]][] = [
    ["Error adding/updating cluster(s) outbound|80||a.b: malformed IP address: x, inbound|80||: no", ["outbound|80||a.b", "inbound|80||"]],
    ["Error adding/updating listener(s) virtualInbound: unknown cluster 'outbound|80||a.b'", ["virtualInbound"]],
    ["Error adding/updating cluster(s) outbound|80||a.b.c: refers to outbound|80||a.b", ["outbound|80||a.b.c"]],
    ["route: unknown cluster 'outbound|80||a.b'", ["outbound|80||a.b"]],
    ["problem in outbound|80||a.b.", ["outbound|80||a.b"]],
    ["outbound|80||a.b.c is bad", ["outbound|80||a.b.c"]],
    ["duplicate domain 10.0.0.1:80 on port 80 or 8080", []],
    ["Only unique values for domains are permitted", []],
    ["", []],
  ];
  for (const [text, blamed] of table) it(text || "no text", () => assert.deepEqual(offendersIn(text, names), blamed));
});
