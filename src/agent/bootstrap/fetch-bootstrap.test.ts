import { describe, expect, it } from "vitest";
import { manualClock } from "../../../test/support/manual-clock.ts";
import { silentLog } from "../../base/log.ts";
import { deltaResponseBytes } from "../../wire/delta-frames.ts";
import { bytesField } from "../../wire/field-writer.ts";
import { type ClientCallEvents, GrpcError } from "../../wire/grpc-channel.ts";
import { GRPC_STATUS } from "../../wire/grpc-status.ts";
import { BOOTSTRAP_TYPE, ENDPOINT_TYPE } from "../../wire/type-urls.ts";
import type { Dialer } from "../dialer.ts";
import { getBootstrap } from "./fetch-bootstrap.ts";

/** What a control plane does with a question. */
type Reaction = "silence" | "no answer to that" | "nothing there" | "token used" | "away" | "a bootstrap";

/** Asks a control plane that does one after the other with questions for bootstraps, and answers others; gives what came of it, and how often it was asked. */
async function outcome(
  reactions: readonly Reaction[],
  last?: string,
  kept: { last: string | undefined } = { last },
): Promise<readonly [bootstrap: string, asked: number]> {
  const clock = manualClock();
  let asked = 0;
  const react = ({ message, ended }: ClientCallEvents, request: Uint8Array): void => {
    const isBootstrap = Buffer.from(request).includes(BOOTSTRAP_TYPE);
    const typeUrl = isBootstrap ? BOOTSTRAP_TYPE : ENDPOINT_TYPE;
    const reaction = isBootstrap ? reactions[asked++] : "nothing there";
    if (reaction === "no answer to that") ended(new GrpcError(GRPC_STATUS.INVALID_ARGUMENT, "unknown type"));
    else if (reaction === "away") ended(new GrpcError(GRPC_STATUS.UNAVAILABLE, "does not answer"));
    else if (reaction === "token used") ended(new GrpcError(GRPC_STATUS.UNAUTHENTICATED, "the join token was used before"));
    else if (reaction === "a bootstrap")
      message(
        deltaResponseBytes({ typeUrl, nonce: "1", resources: [bytesField(2, bytesField(2, Buffer.from("the mesh's")))], removed: [] }),
      );
    else if (reaction === "nothing there") message(deltaResponseBytes({ typeUrl, nonce: "1", resources: [], removed: [] }));
  };
  const dialer = {
    avoid() {},
    dial: async () => ({
      channel: {
        open: (_: string, __: unknown, events: ClientCallEvents) => ({
          send: (request: Uint8Array) => queueMicrotask(() => react(events, request)),
        }),
        close() {},
      },
      headers: {},
      address: "istiod:15012",
    }),
  } as unknown as Dialer;
  const got = getBootstrap(
    {
      dialer,
      node: Buffer.of(),
      kept: {
        read: async () => (kept.last === undefined ? undefined : Buffer.from(kept.last)),
        async write(bytes) {
          kept.last = Buffer.from(bytes).toString();
        },
      },
      builtIn: async () => Buffer.from("built in"),
      clock,
      log: silentLog,
    },
    new AbortController().signal,
  );
  let over = false;
  void got.finally(() => {
    over = true;
  });
  while (!over) {
    for (let turn = 0; turn < 20; turn++) await Promise.resolve();
    clock.advance(1_000);
  }
  return [(await got).toString(), asked];
}

describe("a control plane that gives no bootstrap", () => {
  it("because it is slow leaves the last one, or is asked again", async () => {
    expect(await outcome(["silence"], "the last one")).toEqual(["the last one", 1]);
    expect(await outcome(["silence", "nothing there"])).toEqual(["built in", 2]);
  });

  it("because the certificate was faster, which used up the token, is asked again", async () => {
    expect(await outcome(["token used", "a bootstrap"])).toEqual(["the mesh's", 2]);
    expect(await outcome(["token used", "a bootstrap"], "the last one")).toEqual(["the mesh's", 2]);
    expect(await outcome(Array<Reaction>(9).fill("token used"), "the last one")).toEqual(["the last one", 5]);
  });

  it("because it knows none, and says so or never says anything, leaves the built-in one", async () => {
    expect(await outcome(["no answer to that"], "the last one")).toEqual(["built in", 1]);
    expect(await outcome(["silence", "silence"])).toEqual(["built in", 2]);
  });

  it("because it is away leaves what came of it last, be it that it knows none", async () => {
    const kept = { last: "the last one" };
    expect(await outcome(["no answer to that"], undefined, kept)).toEqual(["built in", 1]);
    expect(await outcome(["away"], undefined, kept)).toEqual(["built in", 1]);
    expect(await outcome(["a bootstrap"], undefined, kept)).toEqual(["the mesh's", 1]);
    expect(await outcome(["away"], undefined, kept)).toEqual(["the mesh's", 1]);
    expect(await outcome(["away", "a bootstrap"])).toEqual(["the mesh's", 2]);
  });
});
