import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { Client, credentials } from "@grpc/grpc-js";
import { assert, describe, it, onTestFinished } from "vitest";
import { manualClock } from "../../test/support/manual-clock.ts";
import { freePort } from "../../test/support/ports.ts";
import { selfSigned } from "../../test/support/tls-server.ts";
import { systemClock } from "../base/clock.ts";
import { Secret } from "../base/secret.ts";
import { createGrpcServer, HEALTH_METHOD } from "../wire/grpc-server.ts";
import type { TlsCredentials } from "../wire/tls-listener.ts";
import { openEarly } from "./early-ports.ts";

const SERVING = "0801";

const call = (client: Client): Promise<string> => {
  const identity = (bytes: Buffer): Buffer => bytes;
  onTestFinished(() => client.close());
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(HEALTH_METHOD, identity, identity, Buffer.alloc(0), (error, answer) =>
      error === null ? resolve(answer?.toString("hex") ?? "") : reject(error),
    );
  });
};

const served = () => {
  const server = createGrpcServer({ accept: () => assert.fail("no stream is opened"), healthy: () => true, clock: systemClock });
  onTestFinished(() => server.drain(100));
  return server;
};

const dial = async (port: number): Promise<Socket> => {
  const socket = connect(port, "127.0.0.1");
  onTestFinished(() => void socket.destroy());
  await once(socket, "connect");
  return socket;
};

describe("ports that are open before they are served", () => {
  it("answer those who called early, and those who call later", async () => {
    const address = `127.0.0.1:${await freePort()}`;
    const early = await openEarly([address], systemClock);
    const first = call(new Client(address, credentials.createInsecure()));
    await dial(Number(address.split(":")[1])); // Those who say nothing are in nobody's way.
    await served().listen(await early.take(address));
    assert.equal(await first, SERVING);
    assert.equal(await call(new Client(address, credentials.createInsecure())), SERVING);
  });

  it("do so over TLS", async () => {
    const { key, cert } = await selfSigned("localhost");
    const current = { chain: cert.toString(), key: new Secret(key.toString()), clientRoots: [] };
    const tls: TlsCredentials = { current, follow: () => () => {} };
    const address = `127.0.0.1:${await freePort()}`;
    const secured = (): Client => new Client(address, credentials.createSsl(cert), { "grpc.ssl_target_name_override": "localhost" });
    const early = await openEarly([address], systemClock);
    const first = call(secured());
    await dial(Number(address.split(":")[1]));
    await served().listen(await early.take(address), tls);
    assert.equal(await first, SERVING);
    assert.equal(await call(secured()), SERVING);
  });

  it("let nobody wait for a start that takes long, and are opened when it is done", async () => {
    const clock = manualClock();
    const port = await freePort();
    const early = await openEarly([`127.0.0.1:${port}`], clock);
    const socket = await dial(port);
    clock.advance(2_000);
    await once(socket.resume(), "close");
    const refused = connect(port, "127.0.0.1");
    const [error] = await once(refused, "error");
    assert.equal(error.code, "ECONNREFUSED");
    await served().listen(await early.take(`127.0.0.1:${port}`));
    assert.equal(await call(new Client(`127.0.0.1:${port}`, credentials.createInsecure())), SERVING);
  });

  it("are closed again where one of them is taken", async () => {
    const [free, taken] = [await freePort(), await freePort()];
    const other = await openEarly([`127.0.0.1:${taken}`], systemClock);
    onTestFinished(other.close);
    const failed = await openEarly([`127.0.0.1:${free}`, `127.0.0.1:${taken}`], systemClock).catch((error: Error) => error.message);
    assert.match(String(failed), new RegExp(`127.0.0.1:${taken} is taken`));
    const again = await openEarly([`127.0.0.1:${free}`], systemClock);
    again.close();
  });
});
