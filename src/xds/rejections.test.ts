import assert from "node:assert/strict";
import { describe, it } from "vitest";
import type { Encoded, ResourceSet } from "../wire/encoded.ts";
import { NOTHING_HELD } from "./holding.ts";
import { offendersIn, Rejections } from "./rejections.ts";

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

describe("resources that users changed and a client refuses", () => {
  const encoded = (version: string): Encoded => ({ typeUrl: "t", name: "listener", version, body: new Uint8Array() });
  const [plain, changed, good] = [encoded("plain"), encoded("changed"), encoded("good")];
  const offered: ResourceSet = { resources: new Map([["listener", changed]]), failed: [] };
  const holding = (held: Encoded): typeof NOTHING_HELD => ({
    ...NOTHING_HELD,
    base: { resources: new Map([["listener", held]]), failed: [] },
  });
  const refused = (held: typeof NOTHING_HELD, plainOf: (resource: Encoded) => Encoded | undefined): Rejections => {
    const rejections = new Rejections(plainOf);
    rejections.refuse({ changed: [changed], removed: [] }, held, "no");
    return rejections;
  };
  const standIn = (rejections: Rejections): Encoded | undefined => rejections.replacements(offered).get("listener");

  it("are served without the change where the client has no other", () => {
    assert.equal(standIn(refused(NOTHING_HELD, (one) => (one === changed ? plain : undefined))), plain);
  });

  it("are served as they were accepted before, with the users' change of then", () => {
    assert.equal(standIn(refused(holding(good), () => plain)), good);
  });

  it("are served without the change as they are now rather than as they were", () => {
    assert.equal(standIn(refused(holding(good), (one) => (one === changed ? plain : undefined))), plain);
  });

  it("are withheld when they are refused without the change as well", () => {
    const rejections = refused(NOTHING_HELD, (one) => (one === changed ? plain : undefined));
    rejections.refuse({ changed: [plain], removed: [] }, NOTHING_HELD, "no again");
    assert.deepEqual([...rejections.replacements(offered)], [["listener", undefined]]);
  });
});
