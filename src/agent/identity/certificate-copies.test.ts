import { mkdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { tempDir } from "../../../test/support/cleanup.ts";
import { manualClock } from "../../../test/support/manual-clock.ts";
import { silentLog } from "../../base/log.ts";
import { Secret } from "../../base/secret.ts";
import { makeCa } from "../../ca/ca-fixture.ts";
import { privateKeyPem } from "../../pki/keys.ts";
import { CERTIFICATE_FILES, copyCertificates, hasCopies, readEarlierCertificate } from "./certificate-copies.ts";
import type { WorkloadIdentity } from "./workload-identity.ts";

it("what an earlier run left counts where it is whole, fits and has not ended", async () => {
  const directory = await tempDir();
  const clock = manualClock();
  const times = { notBefore: clock.now() - 60_000, notAfter: clock.now() + 60_000 };
  const [own, other] = [await makeCa("own", times), await makeCa("other", times)];
  const put = (name: string, text: string): Promise<void> => writeFile(join(directory, name), text);
  expect(await readEarlierCertificate(directory, clock)).toBeUndefined();
  await put("cert-chain.pem", own.certificate.pem);
  await put("key.pem", privateKeyPem(own.keys.privateKey));
  expect(await readEarlierCertificate(directory, clock)).toBeUndefined();
  await put("root-cert.pem", other.certificate.pem);
  expect(await readEarlierCertificate(directory, clock)).toMatchObject({ roots: other.certificate.pem });
  await put("key.pem", privateKeyPem(other.keys.privateKey));
  expect(await readEarlierCertificate(directory, clock)).toBeUndefined();
  await put("key.pem", privateKeyPem(own.keys.privateKey));
  clock.advance(60_000);
  expect(await readEarlierCertificate(directory, clock)).toBeUndefined();
});

for (const { place, forAll, modes } of [
  { place: "in a pod anybody may read them: they are for other containers", forAll: true, modes: [0o644, 0o644, 0o755] },
  { place: "elsewhere the key is for its owner alone", forAll: false, modes: [0o600, 0o600, 0o700] },
])
  it(`copies are written: ${place}`, async () => {
    const directory = join(await tempDir(), "copies");
    const followers: (() => void)[] = [];
    const identity = {
      current: { chain: "CHAIN", key: new Secret("KEY") },
      roots: () => "ROOTS",
      follow: (changed: () => void) => followers.push(changed),
    } as unknown as WorkloadIdentity;
    copyCertificates(identity, { directory, forAll, clock: manualClock(), log: silentLog });
    expect(await hasCopies(directory)).toBe(false);
    for (const changed of followers) changed();
    await expect.poll(() => hasCopies(directory)).toBe(true);
    const mode = async (path: string): Promise<number> => (await stat(path)).mode & 0o777;
    const { key, chain, roots } = CERTIFICATE_FILES;
    expect([await mode(join(directory, key)), await mode(join(directory, chain)), await mode(directory)]).toEqual(modes);
    expect(await mode(join(directory, roots))).toBe(0o644);
  });

it("certificate, key and roots are replaced together, and what could not be written is tried again", async () => {
  const directory = await tempDir();
  const clock = manualClock();
  const followers: (() => void)[] = [];
  const identity = {
    current: { chain: "CHAIN", key: new Secret("KEY") },
    roots: () => "ROOTS",
    follow: (changed: () => void) => followers.push(changed),
  };
  const faults: string[] = [];
  const log = { ...silentLog, error: (_fields: string | object, text?: string) => void faults.push(text ?? "") };
  copyCertificates(identity as unknown as WorkloadIdentity, { directory, forAll: false, clock, log });
  const told = (): void => {
    for (const changed of followers) changed();
  };
  told();
  await expect.poll(() => hasCopies(directory)).toBe(true);
  const { key, chain } = CERTIFICATE_FILES;
  const inWay = join(directory, `${chain}.tmp`);
  await mkdir(inWay);
  identity.current = { chain: "CHAIN 2", key: new Secret("KEY 2") };
  told();
  await expect.poll(() => faults).toEqual(["copies of the certificate cannot be written"]);
  const both = async (): Promise<string[]> => [
    await readFile(join(directory, key), "utf8"),
    await readFile(join(directory, chain), "utf8"),
  ];
  expect(await both()).toEqual(["KEY", "CHAIN"]);
  await rm(inWay, { recursive: true });
  clock.advance(10_000);
  await expect.poll(both).toEqual(["KEY 2", "CHAIN 2"]);
});
