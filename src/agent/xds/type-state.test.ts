import { describe, expect, it } from "vitest";
import { type DeltaRequestParts, deltaRequestBytes } from "../../wire/delta-frames.ts";
import { type DiscoveryRequest, readDeltaRequest } from "../../wire/discovery-request.ts";
import { TypeState } from "./type-state.ts";

const request = (parts: Omit<DeltaRequestParts, "typeUrl">): DiscoveryRequest =>
  readDeltaRequest(deltaRequestBytes({ typeUrl: "t", ...parts }));
const resource = (name: string, version: string) => ({ name, version, bytes: new Uint8Array() });

describe("what Envoy wants and holds of a type", () => {
  it("is everything where it names nothing at first", () => {
    const type = new TypeState("t");
    type.subscribe(request({ initialVersions: [["a", "1"]] }));
    expect(type.opening()).toEqual({ typeUrl: "t", subscribe: [], initialVersions: new Map([["a", "1"]]) });
    type.subscribe(request({ subscribe: ["b"] }));
    expect(type.opening()?.subscribe).toEqual(["*", "b"]);
  });

  it("is what it names, and nothing is asked for where it names nothing any more", () => {
    const type = new TypeState("t");
    type.subscribe(request({ subscribe: ["a", "b"] }));
    expect(type.opening()?.subscribe).toEqual(["a", "b"]);
    type.subscribe(request({ unsubscribe: ["a", "b"] }));
    expect(type.opening()).toBeUndefined();
  });

  it("counts as held when it is accepted, in the order in which it was sent", () => {
    const type = new TypeState("t");
    type.subscribe(request({}));
    type.sent({ nonce: "1", resources: [resource("a", "1"), resource("b", "1")], removed: [] }, 1);
    type.sent({ nonce: "2", resources: [resource("a", "2")], removed: ["b"] }, 1);
    expect(type.answered(request({ nonce: "2" }))).toBeUndefined();
    expect(type.held.size).toBe(0);
    expect(type.answered(request({ nonce: "1" }))?.stream).toBe(1);
    expect([...type.held]).toEqual([
      ["a", "1"],
      ["b", "1"],
    ]);
    type.answered(request({ nonce: "2", error: { code: 3, message: "no" } }));
    expect([...type.held]).toEqual([
      ["a", "1"],
      ["b", "1"],
    ]);
  });

  it("decides what is sent from disk: neither what is held nor what is on its way", () => {
    const kept = new Map([resource("a", "1"), resource("b", "1"), resource("c", "1")].map((one) => [one.name, one]));
    const type = new TypeState("t");
    type.subscribe(request({ subscribe: ["a", "b", "x"], initialVersions: [["a", "1"]] }));
    expect(type.wanted(kept).map(({ name }) => name)).toEqual(["b"]);
    type.sent({ nonce: "1", resources: [resource("b", "1")], removed: [] }, 0);
    expect(type.wanted(kept)).toEqual([]);
  });
});
