import assert from "node:assert/strict";
import { describe, it } from "vitest";
import type { Log } from "../base/log.ts";
import { createSecretLog } from "./secret-log.ts";

function rig() {
  const lines: [fields: Readonly<Record<string, unknown>>, text: string][] = [];
  const counted: string[] = [];
  const warn = (fields: Readonly<Record<string, unknown>>, text: string): void => void lines.push([fields, text]);
  return { lines, counted, say: createSecretLog({ warn } as unknown as Log, (why) => void counted.push(why)) };
}

describe("createSecretLog", () => {
  const node = (name: string, namespace = "shop"): string => `router~10.0.0.1~${name}.${namespace}~${namespace}.svc.cluster.local`;
  const absent = { name: "kubernetes://a", why: "absent", reason: "there is no valid Secret shop/a" } as const;

  it("says of each secret once what is wrong, however many replicas ask and however often", () => {
    const { lines, counted, say } = rig();
    for (const name of ["edge-1", "edge-2", "edge-1"]) say({ node: node(name), ...absent });
    assert.equal(lines.length, 1);
    assert.deepEqual(lines[0]?.[0], { node: node("edge-1"), secret: "kubernetes://a", reason: absent.reason });
    say({ node: node("edge-1"), ...absent, why: "refused", reason: "another reason" });
    say({ node: node("edge-1", "bank"), ...absent });
    assert.deepEqual(counted, ["absent", "refused", "absent"]);
  });

  it("bounds what a stranger can make it write", () => {
    const { lines, say } = rig();
    for (let index = 0; index < 12_000; index++) say({ node: node("edge"), ...absent, name: `${"x".repeat(300)}${index}` });
    assert.equal(lines.length, 10_000);
    assert.equal(String(lines[0]?.[0].secret).length, 200);
    const { lines: others, say: sayOther } = rig();
    sayOther({ node: node("edge"), ...absent, name: "a\nb\u001b[31m" });
    assert.equal(others[0]?.[0].secret, "a?b?[31m");
  });
});
