import { describe, expect, it } from "vitest";
import type { Caller } from "../authn/authenticator.ts";
import { AuthnError } from "../authn/authn-error.ts";
import { nextTurn } from "../base/slice.ts";
import type { DiscoveryStream, Peer } from "../wire/discovery-stream.ts";
import { GRPC_STATUS } from "../wire/grpc-status.ts";
import { authenticatedStreams } from "./authenticated-streams.ts";

const CALLER: Caller = { by: "token", identity: { trustDomain: "td", namespace: "shop", serviceAccount: "cart" } };

/** A stream whose caller is still being looked at. */
function rig() {
  const proof = Promise.withResolvers<Caller>();
  const [log, reading]: [string[], string[]] = [[], []];
  const callers = new WeakMap<Peer, Caller>();
  const peer: Peer = { address: "10.0.0.1:1", header: () => undefined, certificate: undefined };
  const stream = {
    ...{ peer, variant: "delta", close: (status: number) => log.push(`closed ${status}`) },
    ...{ pause: () => reading.push("paused"), resume: () => reading.push(`read, ${log.length} things happened`) },
  } as unknown as DiscoveryStream;
  const accept = authenticatedStreams({
    authenticate: () => proof.promise,
    callers,
    accept() {
      log.push("accepted");
      return { message: (bytes) => log.push(`message ${bytes.length}`), ended: () => log.push("ended") };
    },
    refused: (_, error) => log.push(`refused ${error.reason}`),
  });
  return { proof, log, reading, callers, peer, events: accept(stream) };
}

describe("a stream of the secure port", () => {
  it("is heard in order once its caller is known, and not before", async () => {
    const { proof, log, callers, peer, events } = rig();
    events.message(Buffer.alloc(1));
    events.message(Buffer.alloc(2));
    expect(log).toEqual([]);
    proof.resolve(CALLER);
    await nextTurn();
    events.message(Buffer.alloc(3));
    events.ended();
    expect(log).toEqual(["accepted", "message 1", "message 2", "message 3", "ended"]);
    expect(callers.get(peer)).toBe(CALLER);
  });

  it("is not read before its caller is known, and then before somebody else decides whether to read it", async () => {
    const { proof, reading } = rig();
    expect(reading).toEqual(["paused"]);
    proof.resolve(CALLER);
    await nextTurn();
    expect(reading).toEqual(["paused", "read, 0 things happened"]);
  });

  it("is closed and counted where the caller proves nothing", async () => {
    const { proof, log, callers, peer, events } = rig();
    events.message(Buffer.alloc(1));
    proof.reject(new AuthnError("token expired", "expired"));
    await nextTurn();
    events.message(Buffer.alloc(1));
    events.ended();
    expect(log).toEqual(["refused token expired", `closed ${GRPC_STATUS.UNAUTHENTICATED}`]);
    expect(callers.get(peer)).toBeUndefined();
  });

  it("does not hold much for somebody who is not known", async () => {
    for (const [count, size] of [
      [33, 1],
      [2, 600_000],
    ] as const) {
      const { proof, log, events } = rig();
      for (let i = 0; i < count; i++) events.message(Buffer.alloc(size));
      proof.resolve(CALLER);
      await nextTurn();
      expect(log).toEqual(["refused no credentials", `closed ${GRPC_STATUS.UNAUTHENTICATED}`]);
    }
  });

  it("that ended meanwhile is never served", async () => {
    const { proof, log, events } = rig();
    events.ended();
    proof.resolve(CALLER);
    await nextTurn();
    expect(log).toEqual([]);
  });
});
