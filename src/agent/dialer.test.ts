import { chmod, mkdir, writeFile } from "node:fs/promises";
import { createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { createServer as createTlsServer } from "node:tls";
import { expect, it, onTestFinished } from "vitest";
import { tempDir } from "../../test/support/cleanup.ts";
import { freePort } from "../../test/support/ports.ts";
import { systemClock } from "../base/clock.ts";
import { makeCa } from "../ca/ca-fixture.ts";
import { privateKeyPem } from "../pki/keys.ts";
import { callHeaders } from "./call-headers.ts";
import { createDialer } from "./dialer.ts";

/** A replica that takes connections; what it answers is nobody's concern here. */
async function replica(): Promise<{ readonly port: number; end(): void }> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  return { port: (server.address() as AddressInfo).port, end: () => void server.close() };
}

it("sends headers of the user's, never over its own, and no credentials where they can be read", async () => {
  const { port } = await replica();
  const targets = [{ host: "127.0.0.1", port, tls: false, serverName: "" }];
  const env = { XDS_HEADER_Tenant: "a", XDS_HEADER_CLUSTERID: "b", XDS_HEADER_AUTHORIZATION: "c", CA_HEADER_X: "d" };
  const credentials = { certificate: () => undefined, roots: () => "" };
  const options = { baseDir: "/nowhere", targets, namedRoots: "", clusterId: "mine", credentials, clock: systemClock };
  const { channel, headers } = await createDialer({ ...options, headers: callHeaders(env, "XDS_HEADER_") }).dial();
  channel.close();
  expect(headers).toEqual({ tenant: "a", clusterid: "mine" });
  for (const name of ["XDS_HEADER_", "XDS_HEADER_te", "XDS_HEADER_grpc-timeout", "XDS_HEADER_:path"])
    expect(() => callHeaders({ [name]: "x" }, "XDS_HEADER_"), name).toThrow("names no header that can be sent");
  expect(() => callHeaders({ XDS_HEADER_a: "x\r\ny" }, "XDS_HEADER_")).toThrow("printable");
});

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

it("says in words of its own that what is there does not speak TLS", async () => {
  const { port } = await replica();
  const baseDir = await tempDir();
  await mkdir(join(baseDir, "var/run/secrets/tokens"), { recursive: true });
  await writeFile(join(baseDir, "var/run/secrets/tokens/istio-token"), "a.b.c");
  const credentials = { certificate: () => undefined, roots: () => "-----BEGIN CERTIFICATE-----" };
  const targets = [{ host: "127.0.0.1", port, tls: true, serverName: "istiod" }];
  const dialer = createDialer({ baseDir, targets, namedRoots: "SYSTEM", clusterId: "", credentials, clock: systemClock });
  await expect(dialer.dial()).rejects.toThrow(/^127\.0\.0\.1:\d+ does not answer: what is there does not speak TLS$/);
});

it("speaks of clocks, not of roots, where the control plane's certificate has ended", async () => {
  const now = systemClock.now();
  const { certificate, keys } = await makeCa("istiod", { notBefore: now - 7_200_000, notAfter: now - 3_600_000 });
  const server = createTlsServer({ cert: certificate.pem, key: privateKeyPem(keys.privateKey) });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const baseDir = await tempDir();
  await mkdir(join(baseDir, "var/run/secrets/tokens"), { recursive: true });
  await writeFile(join(baseDir, "var/run/secrets/tokens/istio-token"), "a.b.c");
  await writeFile(join(baseDir, "root.pem"), certificate.pem);
  const credentials = { certificate: () => undefined, roots: () => "" };
  const targets = [{ host: "127.0.0.1", port, tls: true, serverName: "istiod" }];
  const dialer = createDialer({ baseDir, targets, namedRoots: join(baseDir, "root.pem"), clusterId: "", credentials, clock: systemClock });
  const refused = await dialer.dial().catch((error: unknown) => error);
  expect(refused).toMatchObject({ message: expect.stringContaining("certificate has expired"), hint: expect.stringContaining("clocks") });
});

it.for(["a.b.c\nd.e.f", "x".repeat(20_000)])(
  "says of what cannot be sent that it is no token, and nothing of what it is (number %#)",
  async (text) => {
    const baseDir = await tempDir();
    await mkdir(join(baseDir, "var/run/secrets/tokens"), { recursive: true });
    await writeFile(join(baseDir, "var/run/secrets/tokens/istio-token"), text);
    const credentials = { certificate: () => undefined, roots: () => "" };
    const targets = [{ host: "127.0.0.1", port: 1, tls: true, serverName: "istiod" }];
    const dialer = createDialer({ baseDir, targets, namedRoots: "SYSTEM", clusterId: "", credentials, clock: systemClock });
    await expect(dialer.dial()).rejects.toThrow(/istio-token is no token: that is one line of at most 16384 characters$/);
  },
);

it("does not take a token that it may not read for none", async () => {
  const baseDir = await tempDir();
  await mkdir(join(baseDir, "var/run/secrets/tokens"), { recursive: true });
  await writeFile(join(baseDir, "var/run/secrets/tokens/istio-token"), "a.b.c", { mode: 0o200 });
  const credentials = { certificate: () => undefined, roots: () => "" };
  const targets = [{ host: "127.0.0.1", port: 1, tls: true, serverName: "istiod" }];
  const dial = (namedRoots: string) =>
    createDialer({ baseDir, targets, namedRoots, clusterId: "", credentials, clock: systemClock }).dial();
  await mkdir(join(baseDir, "etc/certs"), { recursive: true });
  await writeFile(join(baseDir, "etc/certs/root-cert.pem"), "-----BEGIN CERTIFICATE-----", { mode: 0o200 });
  await asOrdinaryUser(baseDir, async () => {
    await expect(dial("SYSTEM")).rejects.toThrow("istio-token may not be read by user");
    await expect(dial("")).rejects.toThrow("root-cert.pem may not be read by user");
  });
});

/** Root may read everything. */
async function asOrdinaryUser(directory: string, act: () => Promise<void>): Promise<void> {
  if (process.geteuid?.() !== 0) return act();
  await chmod(directory, 0o755);
  process.seteuid?.(65534);
  try {
    await act();
  } finally {
    process.seteuid?.(0);
  }
}
