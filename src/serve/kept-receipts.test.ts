import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { tempDir } from "../../test/support/cleanup.ts";
import { manualClock } from "../../test/support/manual-clock.ts";
import { eventually } from "../../test/support/wait.ts";
import { silentLog } from "../base/log.ts";
import { nextTurn } from "../base/slice.ts";
import { defineInputs } from "../config/inputs.ts";
import type { ConfigObject } from "../config/object.ts";
import { createEngine } from "../engine/index.ts";
import { MeshConfigSchema } from "../gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import { openReceipts } from "./kept-receipts.ts";

const object = (hash: string): ConfigObject => ({
  ...{ kind: "Thing", group: "", version: "v1", namespace: "a", name: "b", labels: {}, annotations: {} },
  ...{ createdAt: 0, generation: 0, spec: {}, hash },
});

/** A control plane on a directory, with one object in force. */
async function start(baseDir: string, { hash = "1", settings = {}, build = "b1" } = {}) {
  const engine = createEngine();
  const inputs = defineInputs(engine);
  inputs.objects.set("Thing/a/b", object(hash));
  const clock = manualClock();
  return { inputs, clock, file: await openReceipts({ baseDir, build, world: { engine, inputs }, settings, clock, log: silentLog }) };
}

const path = (dir: string): string => join(dir, "var/lib/istio/receipts");

describe("receipts on disk", () => {
  it("are written when it is quiet, and hold for the same program and inputs only", async () => {
    const dir = await tempDir();
    const first = await start(dir);
    first.file.follow({ receipts: () => ["r1", undefined, "r2"] });
    first.file.stirred();
    first.clock.advance(500);
    first.file.stirred();
    first.clock.advance(500);
    await expect(readFile(path(dir))).rejects.toThrow();
    first.clock.advance(500);
    await eventually("they are written", async () => (await readFile(path(dir), "utf8")).endsWith("r1\nr2"));

    expect((await start(dir)).file.has("r1")).toBe(true);
    expect((await start(dir)).file.has("r3")).toBe(false);
    expect((await start(dir, { hash: "2" })).file.has("r1")).toBe(false);
    expect((await start(dir, { settings: { another: 1 } })).file.has("r1")).toBe(false);
    expect((await start(dir, { build: "b2" })).file.has("r1")).toBe(false);
    const later = await start(dir);
    expect(later.file.has("r1")).toBe(true);
    later.inputs.names.set("host", ["10.0.0.1"]);
    expect(later.file.has("r1")).toBe(false);
    later.inputs.names.delete("host");
    expect(later.file.has("r1"), "what was once out of date is forgotten").toBe(false);
  });

  it("do not hold under another mesh configuration, whatever differs in it", async () => {
    const dir = await tempDir();
    const withMesh = async (mesh: MessageInitShape<typeof MeshConfigSchema>) => {
      const started = await start(dir);
      started.inputs.mesh.set("mesh", create(MeshConfigSchema, mesh));
      return started;
    };
    const { file, clock } = await withMesh({ connectTimeout: { seconds: 5n } });
    file.follow({ receipts: () => ["r1"] });
    file.stirred();
    clock.advance(1_000);
    await eventually("it is written", async () => (await readFile(path(dir), "utf8")).endsWith("r1"));

    expect((await withMesh({ connectTimeout: { seconds: 5n } })).file.has("r1")).toBe(true);
    expect((await withMesh({ connectTimeout: { seconds: 6n } })).file.has("r1")).toBe(false);
    expect((await withMesh({ connectTimeout: { seconds: 5n }, trustDomain: "other" })).file.has("r1")).toBe(false);
    expect((await start(dir)).file.has("r1")).toBe(false);
  });

  it("are not written after each of many changes, but after the last", async () => {
    const dir = await tempDir();
    const { file, clock } = await start(dir);
    const held = ["r0"];
    file.follow({ receipts: () => held });
    const written = async (): Promise<string> => (await readFile(path(dir), "utf8").catch(() => "")).split("\n").slice(1).join();
    const change = (receipt: string): void => {
      held.push(receipt);
      file.stirred();
    };
    change("r1");
    clock.advance(1_000);
    await eventually("the first is written", async () => (await written()) === "r0,r1");
    for (const receipt of ["r2", "r3", "r4"]) {
      change(receipt);
      clock.advance(1_000);
    }
    await nextTurn();
    expect(await written()).toBe("r0,r1");
    clock.advance(5_000);
    await eventually("the last is written", async () => (await written()) === "r0,r1,r2,r3,r4");
  });

  it("are not written anew before the last write is done, however long that takes", async () => {
    const dir = await tempDir();
    const { file, clock } = await start(dir);
    let [inHand, most, begun] = [0, 0, 0];
    /** As many steps as take some turns of the loop, since each takes a slice. */
    const slow = function* (): Generator<string | undefined> {
      begun += 1;
      inHand += 1;
      most = Math.max(most, inHand);
      for (let step = 0; step < 20; step += 1) {
        clock.advance(10);
        yield undefined;
      }
      inHand -= 1;
      yield `r${begun}`;
    };
    const stop = file.follow({ receipts: slow });
    for (let turn = 0; turn < 3; turn += 1) {
      file.stirred();
      clock.advance(6_000);
    }
    await eventually("the last is written", () => begun === 3 && inHand === 0);
    await stop();
    expect(most).toBe(1);
  });

  it("that cannot be read are none", async () => {
    const dir = await tempDir();
    expect((await start(dir)).file.has("")).toBe(false);
    await mkdir(join(dir, "var/lib/istio"), { recursive: true });
    await writeFile(path(dir), Buffer.from([0xff, 0xfe, 0, 10, 1]));
    expect((await start(dir)).file.has("")).toBe(false);
  });
});
