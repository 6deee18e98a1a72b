import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { tempDir } from "../../../test/support/cleanup.ts";
import { manualClock } from "../../../test/support/manual-clock.ts";
import { makeCa } from "../../ca/ca-fixture.ts";
import { privateKeyPem } from "../../pki/keys.ts";
import { readEarlierCertificate } from "./certificate-copies.ts";

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
