import { describe, expect, it } from "vitest";
import { manualClock } from "../../test/support/manual-clock.ts";
import { buildCertificate } from "../pki/build-certificate.ts";
import { buildCsr, buildServerCsr, CsrError, readCsr } from "../pki/csr.ts";
import { generateKeys } from "../pki/keys.ts";
import { writePem } from "../pki/pem.ts";
import { formatSpiffeId } from "../pki/spiffe.ts";
import { makeCa, type TestCa } from "./ca-fixture.ts";
import type { SigningOrder } from "./certificate-api.ts";
import { externalSigner } from "./external-signer.ts";

const CART = { trustDomain: "cluster.local", namespace: "shop", serviceAccount: "cart" };
const HOUR = 3_600_000;

/** A signer that signs what it is told to, and notes what it was asked. */
async function rig({ signer = "example.com/mesh", domain = "", uri = formatSpiffeId(CART) } = {}) {
  const clock = manualClock();
  const life = { notBefore: clock.now() - HOUR, notAfter: clock.now() + 100 * HOUR };
  const root = await makeCa("root", life);
  const issuer = await makeCa("issuer", { ...life, issuer: root });
  const keys = await generateKeys("P-256");
  const orders: SigningOrder[] = [];
  const roots: { trusted: readonly TestCa[] } = { trusted: [root] };
  const external = externalSigner({
    api: {
      async sign(order) {
        orders.push(order);
        const der = buildCertificate({
          use: { is: "workload", uri },
          keyInfo: (await readCsr(order.csr)).keyInfo,
          notBefore: clock.now() - 1_000,
          notAfter: clock.now() + HOUR,
          issuer: { key: issuer.keys.privateKey, keyInfo: issuer.certificate.keyInfo, name: issuer.certificate.subject },
        });
        return writePem("CERTIFICATE", der) + issuer.certificate.pem + root.certificate.pem;
      },
    },
    signer,
    domain,
    defaultTtlMs: 24 * HOUR,
    maxTtlMs: 48 * HOUR,
    patienceMs: 60_000,
    roots: () => roots.trusted.map(({ certificate }) => certificate),
    clock,
  });
  const ask = async (csr = buildCsr(keys, formatSpiffeId(CART)), more: { readonly signerName?: string; readonly ttlMs?: number } = {}) =>
    external.sign({ identity: CART, csr, keyInfo: keys.publicKey.export({ type: "spki", format: "der" }), ttlMs: 0, ...more });
  return { ask, orders, keys, roots, root, issuer, life };
}

describe("a signer of the cluster", () => {
  it("signs for workloads; its root is not among the certificates above theirs", async () => {
    const { ask, orders, root, issuer } = await rig();
    const issued = await ask();
    expect(issued.intermediates).toEqual([issuer.certificate.pem]);
    expect(issued.roots).toBe(root.certificate.pem);
    expect(orders).toMatchObject([{ signer: "example.com/mesh", ttlMs: 24 * HOUR, uses: expect.arrayContaining(["client auth"]) }]);
    await ask(undefined, { ttlMs: 1_000 * HOUR });
    expect(orders[1]?.ttlMs).toBe(48 * HOUR);
  });

  it("is asked for nothing but the caller's own name", async () => {
    const { ask, orders, keys } = await rig();
    const other = buildCsr(keys, "spiffe://cluster.local/ns/shop/sa/admin");
    for (const csr of [other, buildServerCsr(keys, ["istiod.istio-system.svc"])]) await expect(ask(csr)).rejects.toThrow(CsrError);
    expect(orders).toEqual([]);
  });

  it("is the one that a workload names below the domain that is set, and no other", async () => {
    const { ask, orders } = await rig({ domain: "example.com" });
    await ask(undefined, { signerName: "gold" });
    expect(orders[0]?.signer).toBe("example.com/gold");
    for (const signerName of ["../kubernetes.io/kube-apiserver-client", "a/b", "", "A"])
      await expect(ask(undefined, { signerName })).rejects.toThrow(CsrError);
    await expect((await rig()).ask(undefined, { signerName: "gold" })).rejects.toThrow("CERT_SIGNER_DOMAIN is not set");
    await expect((await rig({ signer: "", domain: "example.com" })).ask()).rejects.toThrow("K8S_SIGNER is not set");
  });

  it("is believed only for that identity, and below the roots that are named for it", async () => {
    const { ask } = await rig({ uri: "spiffe://cluster.local/ns/shop/sa/admin" });
    await expect(ask()).rejects.toThrow(
      "signer example.com/mesh gave no certificate: the answer is not for spiffe://cluster.local/ns/shop/sa/cart",
    );
    const other = await rig();
    other.roots.trusted = [await makeCa("another", other.life)];
    await expect(other.ask()).rejects.toThrow("does not lead to the roots");
  });
});
