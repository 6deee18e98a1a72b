import { randomBytes } from "node:crypto";
import { connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { describe, expect, it } from "vitest";
import { tally } from "../support/calls.ts";
import { weights } from "../support/shop.ts";
import { startShop } from "../support/shop-mesh.ts";
import { inStep } from "../support/sync.ts";
import { keepCalling } from "../support/traffic.ts";

const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

/** Sends bytes on a connection of its own and resolves when the server has ended it, or when it is clear that it will not listen. */
function sendRaw(port: number, bytes: Buffer): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => socket.end(bytes));
    socket.on("error", () => {}).on("close", () => resolve());
    socket.resume();
  });
}

/** Opens a discovery stream and sends bytes that are no discovery request; gives the gRPC status it is ended with. */
function sendMessage(port: number, method: string, bytes: Buffer): Promise<string> {
  return new Promise((resolve, reject) => {
    const session = connectHttp2(`http://127.0.0.1:${port}`).on("error", reject);
    const stream = session.request({
      ":method": "POST",
      ":path": `/envoy.service.discovery.v3.AggregatedDiscoveryService/${method}`,
      "content-type": "application/grpc",
      te: "trailers",
    });
    const status = (headers: NodeJS.Dict<string | string[]>): void => {
      if (headers["grpc-status"] === undefined) return;
      resolve(String(headers["grpc-status"]));
      session.destroy();
    };
    stream.on("response", status).on("trailers", status).on("error", reject).resume();
    const head = Buffer.alloc(5);
    head.writeUInt32BE(bytes.length, 1);
    stream.write(Buffer.concat([head, bytes]));
  });
}

describe("garbage on the xDS port", () => {
  it("disturbs no proxy: traffic goes on and changes arrive", async () => {
    const shop = await startShop({ http: weights(100, 0) });
    const { grpcPort } = shop.istiod;
    await inStep(shop.istiod, "client.shop");
    const traffic = keepCalling(shop.target);

    const badFrame = Buffer.concat([
      PREFACE,
      Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]),
      Buffer.from([0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]),
    ]);
    const raw = [
      randomBytes(4096),
      Buffer.from("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
      PREFACE,
      badFrame,
      Buffer.concat([PREFACE, randomBytes(65_536)]),
    ];
    await Promise.all(Array.from({ length: 10 }, () => raw.map((bytes) => sendRaw(grpcPort, bytes))).flat());
    for (const method of ["DeltaAggregatedResources", "StreamAggregatedResources"]) {
      for (const bytes of [randomBytes(200), Buffer.alloc(0), Buffer.from([0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f])]) {
        expect(await sendMessage(grpcPort, method, bytes)).not.toBe("0");
      }
    }

    await traffic.more(20);
    expect(await traffic.stop()).toEqual([]);
    expect(await shop.proxy.stat("control_plane.connected_state")).toBe(1);
    await shop.route(weights(0, 100), async () => (await tally(20, shop.target)).v2 === 20);
    expect((await fetch(`http://127.0.0.1:${shop.istiod.httpPort}/ready`)).status).toBe(200);
  });
});
