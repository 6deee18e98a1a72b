import { afterEach, describe, expect, it } from "vitest";
import type { RawObject } from "../../config/object.ts";
import { cleanUp, nameOf, object, Rig } from "./directory-rig.ts";

afterEach(cleanUp);

describe("all there is at the start", () => {
  it("is read as its documents are asked for", async () => {
    const rig = new Rig();
    for (let i = 100; i < 200; i += 1) rig.write(`${i}.yaml`, object(`n${i}`, 1));
    const stop = new AbortController();
    const events = rig.source.events(stop.signal)[Symbol.asyncIterator]();
    const { value: event } = await events.next();
    if (event?.type !== "reset" || !(Symbol.asyncIterator in event.objects)) throw new Error("all there is comes first, bit by bit");
    const objects = event.objects[Symbol.asyncIterator]();
    expect(nameOf((await objects.next()).value as RawObject)).toBe("n100");
    rig.write("199.yaml", object("late", 1));
    const names: unknown[] = [];
    for await (const raw of { [Symbol.asyncIterator]: () => objects }) names.push(nameOf(raw));
    expect([names.length, names[0], names.at(-2), names.at(-1)]).toEqual([99, "n101", "n198", "late"]);
    stop.abort();
    await events.return?.();
  });

  it("is not told of in part when the source is stopped", async () => {
    const rig = new Rig();
    for (let i = 100; i < 200; i += 1) rig.write(`${i}.yaml`, object(`n${i}`, 1));
    const stop = new AbortController();
    const events = rig.source.events(stop.signal)[Symbol.asyncIterator]();
    const { value: event } = await events.next();
    const told = async (): Promise<void> => {
      if (event?.type === "reset") for await (const _ of event.objects) stop.abort();
    };
    await expect(told()).rejects.toThrow("aborted");
    expect(await events.next()).toMatchObject({ done: true });
  });
});
