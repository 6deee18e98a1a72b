import { createHmac, generateKeyPairSync, sign } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { holds } from "../../test/support/holds.ts";
import { manualClock } from "../../test/support/manual-clock.ts";
import { type Caller, createAuthenticator } from "./authenticator.ts";
import { AuthnError } from "./authn-error.ts";
import { LONGEST_TOKEN, TOKEN_ALGORITHMS, type TokenAlgorithm } from "./json-web-token.ts";
import { inlineKeys, type KeySource } from "./key-source.ts";
import { oidcVerifier } from "./oidc-verifier.ts";
import { keySetText, makeToken, type TokenKeys, tokenKeys } from "./token-fixture.ts";

const ISSUER = "https://id.example.com";
const clock = manualClock();
const NOW = Math.floor(clock.now() / 1_000);
const good = { iss: ISSUER, aud: "istio-ca", exp: NOW + 600, iat: NOW, sub: "system:serviceaccount:shop:cart" };
const keys = tokenKeys("ES256");
const stranger = tokenKeys("ES256");

function callerOf(
  token: string,
  options: { source?: KeySource; identity?: { namespace: string; serviceAccount: string }; audiences?: string[] } = {},
): Promise<Caller> {
  const verifier = oidcVerifier({
    issuer: ISSUER,
    keys: options.source ?? inlineKeys(keySetText(keys)),
    audiences: options.audiences ?? [],
    identity: options.identity ?? { namespace: undefined, serviceAccount: undefined },
    clock,
  });
  const authenticator = createAuthenticator({ clock, verifiers: () => [verifier], trustDomains: () => ["cluster.local", "old.local"] });
  return authenticator.authenticate({ certificate: undefined, authorization: `Bearer ${token}` });
}

const reasonOf = (token: string, options?: Parameters<typeof callerOf>[1]): Promise<string> =>
  callerOf(token, options).then(
    () => "accepted",
    (error: unknown) => (error instanceof AuthnError ? error.reason : `threw ${String(error)}`),
  );

describe("tokens that are accepted", () => {
  it.for(Object.keys(TOKEN_ALGORITHMS) as TokenAlgorithm[])("are signed with %s", async (algorithm) => {
    const own = tokenKeys(algorithm);
    expect(await callerOf(makeToken(own, good), { source: inlineKeys(keySetText(own)) })).toEqual({
      by: "token",
      identity: { trustDomain: "cluster.local", namespace: "shop", serviceAccount: "cart" },
    });
  });

  it("say who they are for in the claims that configuration names", async () => {
    const identity = { namespace: "kubernetes.io.namespace", serviceAccount: "kubernetes.io.serviceaccount.name" };
    const claims = { ...good, sub: "x", "kubernetes.io": { namespace: "bank", serviceaccount: { name: "teller" } } };
    expect((await callerOf(makeToken(keys, claims), { identity })).identity).toMatchObject({ namespace: "bank", serviceAccount: "teller" });
  });

  it("name one of the audiences", async () => {
    expect(await reasonOf(makeToken(keys, { ...good, aud: ["x", "mesh"] }), { audiences: ["mesh"] })).toBe("accepted");
  });

  it("are judged anew each time, although a good signature is remembered", async () => {
    const later = manualClock();
    const source = inlineKeys(keySetText(keys));
    const verifier = oidcVerifier({
      issuer: ISSUER,
      keys: source,
      audiences: [],
      identity: { namespace: undefined, serviceAccount: undefined },
      clock: later,
    });
    const authenticator = createAuthenticator({ clock: later, verifiers: () => [verifier], trustDomains: () => ["cluster.local"] });
    const verdict = (token: string): Promise<string> =>
      authenticator.authenticate({ certificate: undefined, authorization: `Bearer ${token}` }).then(
        () => "accepted",
        (error: unknown) => (error instanceof AuthnError ? error.reason : `threw ${String(error)}`),
      );
    const token = makeToken(keys, good);
    expect([await verdict(token), await verdict(token)]).toEqual(["accepted", "accepted"]);
    const [header, , signature] = token.split(".");
    const other = Buffer.from(JSON.stringify({ ...good, sub: "system:serviceaccount:shop:admin" })).toString("base64url");
    expect(await verdict(`${header}.${other}.${signature}`)).toBe("token signature");
    expect(await reasonOf(token, { source: inlineKeys(keySetText(tokenKeys("ES256"))) })).toBe("token signature");
    later.advance(601_000);
    expect(await verdict(token)).toBe("token expired");
  });

  it("need not say which key signed them", async () => {
    expect(await reasonOf(makeToken(keys, good, { kid: undefined }))).toBe("accepted");
  });
});

const hmac = (claims: object, secret: string): string => {
  const [header, payload] = [{ alg: "HS256", kid: "k1" }, claims].map((value) => Buffer.from(JSON.stringify(value)).toString("base64url"));
  return `${header}.${payload}.${createHmac("sha256", secret).update(`${header}.${payload}`).digest("base64url")}`;
};
/** Claims as they are written, which no encoder writes. */
function signed(claims: string): string {
  const [header = ""] = makeToken(keys, good).split(".");
  const text = `${header}.${Buffer.from(claims).toString("base64url")}`;
  return `${text}.${sign("sha256", Buffer.from(text), { key: keys.privateKey, dsaEncoding: "ieee-p1363" }).toString("base64url")}`;
}
const unsigned = (alg: string): string => {
  const [header, payload] = [{ alg }, good].map((value) => Buffer.from(JSON.stringify(value)).toString("base64url"));
  return `${header}.${payload}.AA`;
};

describe("tokens that are refused", () => {
  const cases: Readonly<Record<string, readonly [token: string, reason: string]>> = {
    "alg none": [unsigned("none"), "token algorithm"],
    "alg None": [unsigned("None"), "token algorithm"],
    "an algorithm that objects inherit": [unsigned("constructor"), "token algorithm"],
    "HMAC with the public key as secret": [hmac(good, keySetText(keys)), "token algorithm"],
    "no signature": [unsigned("ES256").replace(/AA$/, ""), "token malformed"],
    "two parts": ["a.b", "token malformed"],
    "four parts": ["a.b.c.d", "token malformed"],
    "no JSON": ["AAAA.AAAA.AAAA", "token malformed"],
    "no object": [`${Buffer.from("[]").toString("base64url")}.AAAA.AAAA`, "token malformed"],
    nothing: ["", "token malformed"],
    "critical extensions": [makeToken(keys, good, { crit: ["exp"] }), "token malformed"],
    "a payload that is not encoded": [makeToken(keys, good, { b64: false }), "token malformed"],
    "a key id that is no text": [makeToken(keys, good, { kid: 7 }), "token malformed"],
    "too much": [`${"a".repeat(LONGEST_TOKEN)}.b.c`, "token too large"],
    "another issuer": [makeToken(keys, { ...good, iss: "https://evil.example.com" }), "token issuer"],
    "no issuer": [makeToken(keys, { ...good, iss: undefined }), "token issuer"],
    expired: [makeToken(keys, { ...good, exp: NOW }), "token expired"],
    "never to expire": [makeToken(keys, { ...good, exp: undefined }), "token expired"],
    "an expiry beyond all numbers": [signed(JSON.stringify(good).replace(/"exp":\d+/, '"exp":1e999')), "token expired"],
    "an expiry that is text": [makeToken(keys, { ...good, exp: "9999999999" }), "token expired"],
    "an expiry that is a list": [makeToken(keys, { ...good, exp: [NOW + 600] }), "token expired"],
    "from the future": [makeToken(keys, { ...good, nbf: NOW + 3_600 }), "token expired"],
    "issued in the future": [makeToken(keys, { ...good, iat: NOW + 61 }), "token expired"],
    "a beginning that is text": [makeToken(keys, { ...good, nbf: "0" }), "token expired"],
    "another audience": [makeToken(keys, { ...good, aud: "vault" }), "token audience"],
    "a list of other audiences": [makeToken(keys, { ...good, aud: ["vault", 7, null, ["istio-ca"]] }), "token audience"],
    "an audience that only begins so": [makeToken(keys, { ...good, aud: "istio-ca.example.com" }), "token audience"],
    "no audience": [makeToken(keys, { ...good, aud: undefined }), "token audience"],
    "another signer": [makeToken(tokenKeys("ES256"), good), "token signature"],
    "keys of the sender's own, in its header or where that points": [
      makeToken(stranger, good, {
        jwk: stranger.jwk,
        jku: "https://evil.example.com/keys",
        x5u: "https://evil.example.com/x5u",
        x5c: ["AAAA"],
      }),
      "token signature",
    ],
    "a signature of nothing but zeros": [`${makeToken(keys, good).split(".").slice(0, 2).join(".")}.${"A".repeat(86)}`, "token signature"],
    "a key id that is a path": [makeToken(keys, good, { kid: "../../dev/null" }), "token keys"],
    "an unknown key": [makeToken(tokenKeys("ES256", "k2"), good), "token keys"],
    "a key of another kind": [makeToken(tokenKeys("RS256"), good), "token keys"],
    "a namespace with a slash": [makeToken(keys, { ...good, sub: "system:serviceaccount:a/sa/b:c" }), "identity"],
    "no identity": [makeToken(keys, { ...good, sub: "alice" }), "identity"],
  };
  it.for(Object.keys(cases))("%s", async (name) => {
    const [token = "", reason = ""] = cases[name] ?? [];
    expect(await reasonOf(token)).toBe(reason);
  });

  it("a second word on a claim: what counts is one and the same everywhere, the last", async () => {
    const claims = JSON.stringify({ ...good, sub: "system:serviceaccount:shop:admin" }).replace(
      /}$/,
      `,"sub":${JSON.stringify(good.sub)}}`,
    );
    expect((await callerOf(signed(claims))).identity.serviceAccount).toBe("cart");
  });

  it("claims that are not texts, and claims of the prototype", async () => {
    const identity = { namespace: "ns", serviceAccount: "constructor.name" };
    expect(await reasonOf(makeToken(keys, { ...good, ns: "shop" }), { identity })).toBe("identity");
    expect(
      await reasonOf(makeToken(keys, { ...good, ns: ["shop"], sa: "cart" }), { identity: { namespace: "ns", serviceAccount: "sa" } }),
    ).toBe("identity");
  });

  it("all of them, while the issuer's keys are not known", async () => {
    expect(await reasonOf(makeToken(keys, good), { source: { keys: () => Promise.reject(new Error("away")) } })).toBe("token keys");
    expect(await reasonOf(makeToken(keys, good), { source: inlineKeys("{}") })).toBe("token keys");
  });

  it("whatever character is changed", async () => {
    const token = makeToken(keys, good);
    await holds(
      fc.asyncProperty(fc.nat(token.length - 1), fc.constantFrom(..."AZaz09-_.=\0é"), async (at, character) => {
        const broken = token.slice(0, at) + character + token.slice(at + 1);
        // The last character of a part carries bits that do not count, so another spelling of the same bytes may verify.
        const same = broken
          .split(".")
          .every((text, i) => Buffer.from(text, "base64url").equals(Buffer.from(token.split(".")[i] ?? "", "base64url")));
        if (!same) expect(await reasonOf(broken)).toMatch(/^token|^identity/);
      }),
      { numRuns: 500 },
    );
  });

  it("whatever is sent", async () => {
    await holds(
      fc.asyncProperty(fc.string({ maxLength: 300 }), async (text) => {
        expect(await reasonOf(text)).toMatch(/^token/);
      }),
      { numRuns: 500 },
    );
  });
});

describe("key sets", () => {
  const set = (...list: unknown[]): KeySource => inlineKeys(JSON.stringify({ keys: list }));
  const use = (jwk: TokenKeys["jwk"], more: object): unknown => ({ ...jwk, ...more });

  it("are used for what they say", async () => {
    const token = makeToken(keys, good);
    expect(await reasonOf(token, { source: set({ kty: "oct", k: "AAAA" }, 7, null, use(keys.jwk, {})) })).toBe("accepted");
    expect(await reasonOf(token, { source: set(use(keys.jwk, { use: "enc" })) })).toBe("token keys");
    expect(await reasonOf(token, { source: set(use(keys.jwk, { alg: "ES384" })) })).toBe("token keys");
    const other = tokenKeys("ES256", "k2");
    expect(await reasonOf(makeToken(other, good), { source: set(keys.jwk, other.jwk) })).toBe("accepted");
    expect(await reasonOf(makeToken(other, good, { kid: "k1" }), { source: set(keys.jwk, other.jwk) })).toBe("token signature");
    expect(await reasonOf(token, { source: set(...Array(101).fill(keys.jwk)) })).toBe("token keys");
  });

  it("are not used where they are weak, or of another curve than the algorithm's", async () => {
    const weak = generateKeyPairSync("rsa", { modulusLength: 1024 });
    const short: TokenKeys = {
      algorithm: "RS256",
      privateKey: weak.privateKey,
      jwk: { ...weak.publicKey.export({ format: "jwk" }), kid: "k1" },
    };
    expect(await reasonOf(makeToken(short, good), { source: set(short.jwk) })).toBe("token keys");
    const large = tokenKeys("ES384");
    expect(await reasonOf(makeToken({ ...large, algorithm: "ES256" }, good), { source: set(large.jwk) })).toBe("token keys");
  });
});
