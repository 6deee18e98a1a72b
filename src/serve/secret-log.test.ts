import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { manualClock } from "../../test/support/manual-clock.ts";
import type { Log } from "../base/log.ts";
import { createSecretLog } from "./secret-log.ts";

function rig() {
  const lines: [fields: Readonly<Record<string, unknown>>, text: string][] = [];
  const counted: string[] = [];
  const warn = (fields: Readonly<Record<string, unknown>>, text: string): void => void lines.push([fields, text]);
  const clock = manualClock();
  return { lines, counted, clock, say: createSecretLog({ warn } as unknown as Log, clock, (why) => void counted.push(why)) };
}

describe("createSecretLog", () => {
  const node = (name: string, namespace = "shop"): string => `router~10.0.0.1~${name}.${namespace}~${namespace}.svc.cluster.local`;
  const absent = { namespace: "shop", name: "kubernetes://a", why: "absent", reason: "there is no valid Secret shop/a" } as const;

  it("says of each secret once what is wrong, however many replicas ask and however often", () => {
    const { lines, counted, say } = rig();
    for (const name of ["edge-1", "edge-2", "edge-1"]) say({ node: node(name), ...absent });
    assert.equal(lines.length, 1);
    assert.deepEqual(lines[0]?.[0], { node: node("edge-1"), secret: "kubernetes://a", reason: absent.reason });
    say({ node: node("edge-1"), ...absent, why: "refused", reason: "another reason" });
    say({ node: node("edge-1", "bank"), ...absent, namespace: "bank" });
    assert.deepEqual(counted, ["absent", "refused", "absent"]);
  });

  it("bounds what a proxy that makes names up can make it write, and hears others all the same, then and later", () => {
    const { lines, clock, say } = rig();
    const long = "x".repeat(300);
    for (let index = 0; index < 12_000; index++) say({ node: node("edge"), ...absent, name: `${index}-${long}` });
    assert.equal(lines.length, 1_000);
    assert.equal(String(lines[0]?.[0].secret).length, 200);
    say({ node: node("edge", "bank"), ...absent, namespace: "bank" });
    assert.equal(lines.length, 1_001);
    clock.advance(3_600_000);
    for (let index = 0; index < 60; index++) {
      for (let made = 0; made < 300; made++) say({ node: node("edge"), ...absent, name: `${index}-${made}` });
      clock.advance(3_600_000);
    }
    const before = lines.length;
    assert.ok(before > 15_000);
    say({ node: node("edge", "bank"), ...absent, namespace: "bank", name: "kubernetes://b" });
    assert.equal(lines.length, before + 1);
    const { lines: others, say: sayOther } = rig();
    sayOther({ node: node("edge"), ...absent, name: "a\nb\u001b[31m" });
    assert.equal(others[0]?.[0].secret, "a?b?[31m");
  });
});
