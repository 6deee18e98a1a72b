import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { describe, expect, it } from "vitest";
import { readDirectly } from "./read-directly.ts";

describe("reading directly", () => {
  it("gives what came before and what comes, in order, and the end", async () => {
    const [client, socket] = await connected();
    client.write("before ");
    socket.read(0);
    await once(socket, "readable");
    const taken: string[] = [];
    let events = 0;
    readDirectly(socket, (bytes) => void taken.push(bytes.toString()));
    socket.on("data", () => {
      events += 1;
    });
    client.write("after ");
    const ended = once(socket, "end");
    await expect.poll(() => taken.join("")).toBe("before after ");
    client.end("last");
    await ended;
    expect(taken.join("")).toBe("before after last");
    expect(events).toBe(1); // For what had come before; nothing else took the long way.
    socket.destroy();
  });

  it("leaves errors to events", async () => {
    const [client, socket] = await connected();
    readDirectly(socket, () => {});
    const failed = once(socket, "error");
    client.resetAndDestroy();
    await expect(failed).resolves.toMatchObject([{ code: "ECONNRESET" }]);
  });
});

async function connected(): Promise<readonly [client: Socket, socket: Socket]> {
  const server = createServer({ pauseOnConnect: true }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const client = connect((server.address() as AddressInfo).port, "127.0.0.1");
  const [socket] = (await once(server, "connection")) as [Socket];
  server.close();
  return [client, socket];
}
