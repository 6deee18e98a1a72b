import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { describe, expect, it, onTestFinished } from "vitest";
import { systemClock } from "../base/clock.ts";
import { Secret } from "../base/secret.ts";
import { IstioCertificateRequestSchema, IstioCertificateResponseSchema } from "../gen/istio/v1/auth/ca_pb.js";
import { buildCertificate } from "../pki/build-certificate.ts";
import { buildCsr, readCsr } from "../pki/csr.ts";
import { generateKeys, privateKeyPem } from "../pki/keys.ts";
import { writePem } from "../pki/pem.ts";
import { createGrpcServer } from "../wire/grpc-server.ts";
import type { SignRequest } from "./authority.ts";
import { makeCa, type TestCa } from "./ca-fixture.ts";
import { CREATE_CERTIFICATE } from "./certificate-service.ts";
import { remoteSigner } from "./remote-signer.ts";

const HOUR = 3_600_000;
const valid = () => ({ notBefore: systemClock.now() - HOUR, notAfter: systemClock.now() + HOUR });
const CART = { trustDomain: "cluster.local", namespace: "shop", serviceAccount: "cart" };
const CART_ID = "spiffe://cluster.local/ns/shop/sa/cart";

/** A certificate of the CA, which ends as certificates of it do. */
const leafOf = (
  { certificate, keys, ends = valid().notAfter }: TestCa & { readonly ends?: number },
  use: Parameters<typeof buildCertificate>[0]["use"],
  keyInfo: Uint8Array,
): string =>
  writePem(
    "CERTIFICATE",
    buildCertificate({
      use,
      keyInfo,
      notBefore: valid().notBefore,
      notAfter: ends,
      issuer: { key: keys.privateKey, keyInfo: certificate.keyInfo, name: certificate.subject },
    }),
  );

/** A CA that gives whatever the test makes of a request. */
async function rig(answer: (keyInfo: Uint8Array, root: TestCa) => readonly string[] | Promise<readonly string[]>) {
  const root = await makeCa("root", valid());
  const own = await generateKeys("P-256");
  const keyInfo = own.publicKey.export({ type: "spki", format: "der" });
  const chain = leafOf(root, { is: "server", dnsNames: ["ca.test"], addresses: [] }, keyInfo);
  const asked: { readonly identity: unknown; readonly token: string | undefined }[] = [];
  const server = createGrpcServer({
    accept: () => ({ message() {}, ended() {} }),
    healthy: () => true,
    clock: systemClock,
    methods: {
      [CREATE_CERTIFICATE]: async (bytes, peer) => {
        const request = fromBinary(IstioCertificateRequestSchema, bytes);
        asked.push({ identity: request.metadata?.ImpersonatedIdentity, token: peer.header("authorization") });
        const certChain = [...(await answer((await readCsr(request.csr)).keyInfo, root))];
        return toBinary(IstioCertificateResponseSchema, create(IstioCertificateResponseSchema, { certChain }));
      },
    },
  });
  const material = { chain, key: new Secret(privateKeyPem(own.privateKey)), clientRoots: [] };
  const port = await server.listen("127.0.0.1:0", { current: material, follow: () => () => {} });
  const trusted = { roots: root.certificate.pem, serverName: "ca.test" };
  const roots: string[] = [];
  const signer = remoteSigner({
    host: "127.0.0.1",
    port,
    call: async () => ({ tls: trusted, headers: { authorization: "Bearer t" } }),
    timeoutMs: 60_000,
    clock: systemClock,
    answered: (pem) => roots.push(pem),
  });
  onTestFinished(async () => {
    signer.close();
    await server.drain(0);
  });
  return { signer, root, asked, roots, trusted, port };
}

async function requestOf(): Promise<SignRequest> {
  const keys = await generateKeys("P-256");
  return { identity: CART, csr: buildCsr(keys, CART_ID), keyInfo: keys.publicKey.export({ type: "spki", format: "der" }), ttlMs: HOUR };
}

describe("a CA elsewhere", () => {
  it("is told for whom, by whom, and its roots are passed on", async () => {
    const { signer, root, asked, roots } = await rig((key, ca) => [leafOf(ca, { is: "workload", uri: CART_ID }, key), ca.certificate.pem]);
    const issued = await signer.sign(await requestOf());
    expect(issued).toMatchObject({ intermediates: [], roots: root.certificate.pem });
    expect(asked).toEqual([{ identity: CART_ID, token: "Bearer t" }]);
    expect(roots).toEqual([root.certificate.pem]);
  });

  it("may sign below an intermediate", async () => {
    const { signer } = await rig(async (key, ca) => {
      const below = await makeCa("below", { issuer: ca, ...valid() });
      return [leafOf(below, { is: "workload", uri: CART_ID }, key), below.certificate.pem, ca.certificate.pem];
    });
    expect((await signer.sign(await requestOf())).intermediates).toHaveLength(1);
  });

  const other = async (): Promise<Uint8Array> => (await generateKeys("P-256")).publicKey.export({ type: "spki", format: "der" });
  it.each<[string, Parameters<typeof rig>[0], string]>([
    [
      "for somebody else",
      (key, ca) => [leafOf(ca, { is: "workload", uri: CART_ID.replace("cart", "admin") }, key), ca.certificate.pem],
      "is not for",
    ],
    ["for a server", (key, ca) => [leafOf(ca, { is: "server", dnsNames: ["x"], addresses: [] }, key), ca.certificate.pem], "is not for"],
    ["for another key", async (_, ca) => [leafOf(ca, { is: "workload", uri: CART_ID }, await other()), ca.certificate.pem], "another key"],
    [
      "that has ended",
      (key, ca) => [leafOf({ ...ca, ends: systemClock.now() - 1 }, { is: "workload", uri: CART_ID }, key), ca.certificate.pem],
      "has ended",
    ],
    [
      "that leads nowhere",
      async (key, ca) => [leafOf(await makeCa("root", valid()), { is: "workload", uri: CART_ID }, key), ca.certificate.pem],
      "does not lead to",
    ],
    ["without a root", (key, ca) => [leafOf(ca, { is: "workload", uri: CART_ID }, key)], "no certificate beside the roots"],
    ["that is garbage", () => ["x", "y"], "cannot be read"],
    ["that is empty", () => [], "cannot be read"],
  ])("is not believed with a certificate %s", async (_, answer, message) => {
    const { signer, roots, port } = await rig(answer);
    await expect(signer.sign(await requestOf())).rejects.toThrow(
      new RegExp(`^the CA at 127\\.0\\.0\\.1:${port} gave no certificate: .*${message}`),
    );
    expect(roots).toEqual([]);
  });

  it("that cannot show who it is gets nothing, and is called anew when the roots are replaced", async () => {
    const { signer, asked, trusted } = await rig((key, ca) => [leafOf(ca, { is: "workload", uri: CART_ID }, key), ca.certificate.pem]);
    const right = trusted.roots;
    trusted.roots = (await makeCa("root", valid())).certificate.pem;
    await expect(signer.sign(await requestOf())).rejects.toThrow("gave no certificate");
    expect(asked).toEqual([]);
    trusted.roots = right;
    await expect(signer.sign(await requestOf())).resolves.toBeDefined();
    trusted.serverName = "other.test";
    trusted.roots = `${right}\n`;
    await expect(signer.sign(await requestOf())).rejects.toThrow("other.test");
  });
});
