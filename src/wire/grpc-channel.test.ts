import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { tempDir } from "../../test/support/cleanup.ts";
import { manualClock } from "../../test/support/manual-clock.ts";
import { type Clock, systemClock } from "../base/clock.ts";
import { CallRefusal } from "./call-refusal.ts";
import { type GrpcChannel, type GrpcError, openGrpcChannel } from "./grpc-channel.ts";
import { createGrpcServer, DELTA_METHOD, type GrpcServer } from "./grpc-server.ts";
import { GRPC_STATUS } from "./grpc-status.ts";

async function startRig(
  clock: Clock = systemClock,
): Promise<{ readonly server: GrpcServer; readonly channel: GrpcChannel; readonly path: string }> {
  const path = join(await tempDir(), "socket");
  const server = createGrpcServer({
    settings: { maxUnaryBytes: 4 * 1024 * 1024 },
    accept: (stream) => ({
      message(bytes) {
        if (bytes.length === 0) stream.begin();
        else if (bytes.length === 1) stream.close(GRPC_STATUS.PERMISSION_DENIED, "nicht für dich, 100 %");
        else stream.send([bytes, Buffer.from(stream.peer.header("x-who") ?? "")], () => {});
      },
      ended() {},
    }),
    healthy: () => true,
    clock,
    methods: {
      "/echo": (request) => request,
      "/refuse": () => {
        throw new CallRefusal(GRPC_STATUS.UNAUTHENTICATED, "who are you?");
      },
      "/never": () => new Promise<Uint8Array>(() => {}),
    },
  });
  await server.listen(`unix:${path}`);
  const channel = await openGrpcChannel({ to: { path }, clock: systemClock });
  onTestFinished(async () => {
    channel.close();
    await server.drain(0);
  });
  return { server, channel, path };
}

const failure = (asked: Promise<unknown>): Promise<readonly [number, string]> =>
  asked.then(
    () => [0, ""] as const,
    (error: GrpcError) => [error.status, error.message] as const,
  );

describe("a gRPC client on our own HTTP/2", () => {
  it("asks, and is told why not", async () => {
    const { channel } = await startRig();
    const large = Buffer.alloc(3 * 1024 * 1024, "x");
    expect((await channel.unary("/echo", large, { timeoutMs: 5_000 })).equals(large)).toBe(true);
    expect(await failure(channel.unary("/refuse", large, { timeoutMs: 5_000 }))).toEqual([GRPC_STATUS.UNAUTHENTICATED, "who are you?"]);
    expect((await failure(channel.unary("/unknown", Buffer.alloc(0), { timeoutMs: 5_000 })))[0]).toBe(GRPC_STATUS.UNIMPLEMENTED);
    expect((await failure(channel.unary("/never", Buffer.alloc(0), { timeoutMs: 50 })))[0]).toBe(GRPC_STATUS.DEADLINE_EXCEEDED);
  });

  it("keeps streams, and hears how they end", async () => {
    const { channel, server } = await startRig();
    const heard: string[] = [];
    const open = (): { readonly call: ReturnType<GrpcChannel["open"]>; readonly ended: Promise<GrpcError | undefined> } => {
      const { promise, resolve } = Promise.withResolvers<GrpcError | undefined>();
      const call = channel.open(DELTA_METHOD, { "x-who": "me" }, { message: (bytes) => heard.push(String(bytes)), ended: resolve });
      return { call, ended: promise };
    };
    const first = open();
    first.call.send(Buffer.from("hello "));
    await expect.poll(() => heard).toEqual(["hello me"]);
    first.call.send(Buffer.from("x"));
    expect(await first.ended).toMatchObject({ status: GRPC_STATUS.PERMISSION_DENIED, message: "nicht für dich, 100 %" });
    const second = open();
    second.call.send(Buffer.from("again "));
    await expect.poll(() => heard.length).toBe(2);
    await server.drain(0);
    expect(await second.ended).toMatchObject({ status: GRPC_STATUS.UNAVAILABLE });
    await channel.closed;
    const third = open();
    expect(await third.ended).toMatchObject({ status: GRPC_STATUS.UNAVAILABLE });
  });

  it("hears that a stream is taken before anything is said on it, and not of one that is refused", async () => {
    const { channel } = await startRig();
    const open = () => {
      const heard: string[] = [];
      const events = {
        taken: () => heard.push("taken"),
        message: (bytes: Buffer) => heard.push(String(bytes)),
        ended: () => heard.push("ended"),
      };
      return { heard, call: channel.open(DELTA_METHOD, { "x-who": "me" }, events) };
    };
    const [first, second] = [open(), open()];
    first.call.send(Buffer.alloc(0));
    await expect.poll(() => first.heard).toEqual(["taken"]);
    first.call.send(Buffer.from("hello "));
    await expect.poll(() => first.heard).toEqual(["taken", "hello me"]);
    second.call.send(Buffer.from("x"));
    await expect.poll(() => second.heard).toEqual(["ended"]);
  });

  it("hears at once how a stream ended, however long the server lets it stand", async () => {
    const { channel } = await startRig(manualClock());
    const { promise, resolve } = Promise.withResolvers<GrpcError | undefined>();
    channel.open(DELTA_METHOD, {}, { message() {}, ended: resolve }).send(Buffer.from("x"));
    expect(await promise).toMatchObject({ status: GRPC_STATUS.PERMISSION_DENIED });
  });

  it("ends a call whose messages make no sense to its reader", async () => {
    const { channel } = await startRig();
    const { promise, resolve } = Promise.withResolvers<GrpcError | undefined>();
    const message = (): never => {
      throw new Error("nonsense");
    };
    channel.open(DELTA_METHOD, {}, { message, ended: resolve }).send(Buffer.from("hello"));
    expect(await promise).toMatchObject({ status: GRPC_STATUS.INTERNAL, message: "nonsense" });
    expect(String(await channel.unary("/echo", Buffer.from("still there"), { timeoutMs: 5_000 }))).toBe("still there");
  });

  it("says that nobody is there", async () => {
    const path = join(await tempDir(), "nobody");
    expect((await failure(openGrpcChannel({ to: { path }, clock: systemClock })))[0]).toBe(GRPC_STATUS.UNAVAILABLE);
  });
});
