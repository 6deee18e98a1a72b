import { describe, expect, it } from "vitest";
import { manualClock } from "../../test/support/manual-clock.ts";
import { buildCertificate, type CertificateUse } from "../pki/build-certificate.ts";
import { generateKeys } from "../pki/keys.ts";
import { type Credentials, createAuthenticator } from "./authenticator.ts";
import { AuthnError } from "./authn-error.ts";

const clock = manualClock();
const keys = await generateKeys("P-256");
const keyInfo = keys.publicKey.export({ type: "spki", format: "der" });
const HOUR = 3_600_000;

const certificate = (use: CertificateUse, times: { from?: number; to?: number } = {}): Buffer =>
  buildCertificate({
    use,
    keyInfo,
    notBefore: clock.now() + (times.from ?? -HOUR),
    notAfter: clock.now() + (times.to ?? HOUR),
    issuer: { key: keys.privateKey, keyInfo },
  });
const workload = (uri: string): CertificateUse => ({ is: "workload", uri });
const CART = "spiffe://cluster.local/ns/shop/sa/cart";

const authenticator = createAuthenticator({
  clock,
  verifiers: () => [{ judges: () => true, verify: () => Promise.resolve({ namespace: "bank", serviceAccount: "teller" }) }],
  trustDomains: () => ["cluster.local", "old.local"],
});
const call = (credentials: Partial<Credentials>) =>
  authenticator.authenticate({ certificate: undefined, authorization: undefined, ...credentials });
const fault = (credentials: Partial<Credentials>): Promise<unknown> =>
  call(credentials).then(
    () => "accepted",
    (error: unknown) => error,
  );

const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");
const TOKEN = `Bearer ${part({ alg: "ES256" })}.${part({ iss: "x" })}.AAAA`;

describe("a client certificate", () => {
  it("stands for the workload it names, also under an alias of the trust domain", async () => {
    expect(await call({ certificate: certificate(workload(CART)) })).toMatchObject({ by: "certificate", identity: { namespace: "shop" } });
    const old = await call({ certificate: certificate(workload("spiffe://old.local/ns/shop/sa/cart")) });
    expect(old.identity.trustDomain).toBe("old.local");
  });

  it("goes before a token: a machine whose token ran out goes on renewing", async () => {
    expect(await call({ certificate: certificate(workload(CART)), authorization: "Bearer nonsense" })).toMatchObject({ by: "certificate" });
  });

  it.for([
    ["has expired", workload(CART), { to: 0 }],
    ["is not valid yet", workload(CART), { from: HOUR / 2 }],
    ["is of another trust domain", workload("spiffe://evil.local/ns/shop/sa/cart"), {}],
    ["is no service account's", workload("spiffe://cluster.local/admin"), {}],
    ["is a CA's", { is: "ca" }, {}],
    ["is the control plane's", { is: "server", dnsNames: ["istiod.istio-system.svc"], addresses: [] }, {}],
  ] as const)("counts for nothing when it %s; a token beside it does", async ([, use, times]) => {
    const shown = certificate(use, times);
    expect(await fault({ certificate: shown })).toBeInstanceOf(AuthnError);
    expect(await call({ certificate: shown, authorization: TOKEN })).toMatchObject({ by: "token", identity: { namespace: "bank" } });
  });

  it("that leads to no root is named in the refusal", async () => {
    expect(await fault({ certificateFault: "CERT_HAS_EXPIRED" })).toMatchObject({
      reason: "certificate",
      message: expect.stringContaining("CERT_HAS_EXPIRED"),
    });
  });
});

describe("a token", () => {
  it("of an issuer that is named twice is believed by either, and by nobody who is not its issuer's", async () => {
    const asked: string[] = [];
    const verifier = (name: string, issuer: string, answer: string | AuthnError) => ({
      judges: (one: string) => one === issuer,
      async verify() {
        asked.push(name);
        if (answer instanceof AuthnError) throw answer;
        return { namespace: "bank", serviceAccount: answer };
      },
    });
    const audience = new AuthnError("token audience", "for another audience");
    const signature = new AuthnError("token signature", "not signed");
    const callers = (...verifiers: readonly ReturnType<typeof verifier>[]) =>
      createAuthenticator({ clock, verifiers: () => verifiers, trustDomains: () => ["cluster.local"] }).authenticate({
        certificate: undefined,
        authorization: TOKEN,
      });
    const both = await callers(verifier("one", "x", audience), verifier("other", "y", "no"), verifier("two", "x", "teller"));
    expect([both.identity.serviceAccount, asked]).toEqual(["teller", ["one", "two"]]);
    await expect(callers(verifier("one", "x", audience), verifier("two", "x", signature))).rejects.toBe(audience);
    await expect(callers(verifier("other", "y", "no"))).rejects.toMatchObject({ reason: "token issuer" });
  });
});

describe("nothing at all", () => {
  it("is no identity, from wherever it comes", async () => {
    expect(await fault({})).toMatchObject({ reason: "no credentials" });
    expect(await fault({ authorization: "Basic YWRtaW46" })).toMatchObject({ reason: "token malformed" });
  });
});
