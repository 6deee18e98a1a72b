import { mkdir, writeFile } from "node:fs/promises";
import { createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { tempDir } from "../../test/support/cleanup.ts";
import { freePort } from "../../test/support/ports.ts";
import { systemClock } from "../base/clock.ts";
import { createDialer } from "./dialer.ts";

/** A replica that takes connections; what it answers is nobody's concern here. */
async function replica(): Promise<{ readonly port: number; end(): void }> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  return { port: (server.address() as AddressInfo).port, end: () => void server.close() };
}

it("goes to the next address after one that does not answer, or was found to be of no use, and to that one only once for it", async () => {
  const [one, two, nobody] = [await replica(), await replica(), await freePort()];
  const targets = [one.port, two.port, nobody].map((port) => ({ host: "127.0.0.1", port, tls: false, serverName: "" }));
  const baseDir = await tempDir();
  await mkdir(join(baseDir, "var/run/secrets/tokens"), { recursive: true });
  await writeFile(join(baseDir, "var/run/secrets/tokens/istio-token"), "a.b.c");
  const credentials = { certificate: () => undefined, roots: () => "" };
  const dialer = createDialer({ baseDir, targets, namedRoots: "", clusterId: "", credentials, clock: systemClock });
  const dialled = async (): Promise<number> => {
    const { channel, headers, address } = await dialer.dial();
    channel.close();
    expect(headers.authorization).toBeUndefined(); // A token is not sent where it can be read on the way.
    return Number(address.split(":")[1]);
  };
  expect([await dialled(), await dialled()]).toEqual([one.port, one.port]);
  dialer.avoid(`127.0.0.1:${one.port}`);
  dialer.avoid(`127.0.0.1:${one.port}`); // By another stream that was on it: the second has done nothing wrong.
  expect([await dialled(), await dialled()]).toEqual([two.port, two.port]);
  dialer.avoid(`127.0.0.1:${two.port}`);
  await expect(dialer.dial()).rejects.toThrow(`127.0.0.1:${nobody} does not answer`);
  expect(await dialled()).toBe(one.port);
});
