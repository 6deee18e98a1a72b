import { X509Certificate } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { caTexts, makeCa, type TestCa } from "../../src/ca/ca-fixture.ts";
import { buildCertificate } from "../../src/pki/build-certificate.ts";
import { generateKeys, privateKeyPem } from "../../src/pki/keys.ts";
import { writePem } from "../../src/pki/pem.ts";
import { openGrpcChannel } from "../../src/wire/grpc-channel.ts";
import { HEALTH_METHOD } from "../../src/wire/grpc-server.ts";
import { askCertificate, SERVER_NAME, type Signed } from "../support/identity.ts";
import { startSecureIstiod, tokenFor } from "../support/secure-proxy.ts";

const ID = "spiffe://cluster.local/ns/shop/sa/cart";
const TIMES = { notBefore: systemClock.now() - 3_600_000, notAfter: systemClock.now() + 86_400_000_000 };

/** A certificate for a workload, and the CA that gave it. */
async function leafOf({ certificate, keys }: TestCa): Promise<Pick<Signed, "key" | "chain">> {
  const own = await generateKeys("P-256");
  const der = buildCertificate({
    use: { is: "workload", uri: ID },
    keyInfo: own.publicKey.export({ type: "spki", format: "der" }),
    ...TIMES,
    issuer: { key: keys.privateKey, keyInfo: certificate.keyInfo, name: certificate.subject },
  });
  return { key: privateKeyPem(own.privateKey), chain: [writePem("CERTIFICATE", der), certificate.pem] };
}

it("a root of the mesh may be signed by another CA: who shows a certificate is led there, and no further", async () => {
  const corp = await makeCa("corp", TIMES);
  const [mesh, beside] = [await makeCa("mesh", { ...TIMES, issuer: corp }), await makeCa("beside", { ...TIMES, issuer: corp })];
  const istiod = await startSecureIstiod();
  await istiod.stop();
  for (const [name, text] of Object.entries(caTexts(mesh))) await writeFile(join(istiod.home, "etc/cacerts", name), text);
  await istiod.start();

  // This client knows chains that end at a root only.
  const roots = mesh.certificate.pem + corp.certificate.pem;
  const signed = await askCertificate(istiod, { token: tokenFor("shop", "cart"), roots });
  expect(signed.roots).toBe(mesh.certificate.pem);
  const renewed = await askCertificate(istiod, { certificate: signed, roots });
  expect(new X509Certificate(renewed.chain[0] ?? "").subjectAltName).toBe(`URI:${ID}`);
  for (const other of [beside, corp])
    await expect(askCertificate(istiod, { certificate: await leafOf(other), roots })).rejects.toThrow(
      /certificate was not accepted: (UNABLE_TO_|SELF_SIGNED_CERT_IN_CHAIN)/,
    );

  // Agents verify this server in the same way.
  const tls = { roots: mesh.certificate.pem, serverName: SERVER_NAME };
  const channel = await openGrpcChannel({ to: { host: "127.0.0.1", port: istiod.securePort }, tls, clock: systemClock });
  expect(await channel.unary(HEALTH_METHOD, Buffer.alloc(0), { timeoutMs: 5_000 })).toHaveLength(2);
  channel.close();
});
