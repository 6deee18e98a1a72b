import { generateKeyPairSync } from "node:crypto";
import { describe, expect, it } from "vitest";
import { plainKeySet, writtenKeySet } from "./key-set.ts";

const key = generateKeyPairSync("ec", { namedCurve: "P-256" }).publicKey.export({ format: "jwk" });
const set = (...keys: readonly unknown[]): string => JSON.stringify({ keys });

describe("plainKeySet", () => {
  const other = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const [one, two] = [
    { ...key, kid: "1" },
    { ...other.publicKey.export({ format: "jwk" }), kid: "2" },
  ];

  it("is the same for the same keys, however they are written", () => {
    const told = plainKeySet(set(one, two));
    expect(JSON.parse(told ?? "")).toEqual({ keys: expect.arrayContaining([one, two]) });
    expect(plainKeySet(set(two, Object.fromEntries(Object.entries(one).reverse()), two))).toBe(told);
    expect(plainKeySet(` ${set(one, two, { kty: "EC" })} `)).toBe(told);
  });

  it("holds nothing but what makes a key", () => {
    const whole = { ...other.privateKey.export({ format: "jwk" }), kid: "2", x5c: ["chain"] };
    expect(plainKeySet(set(whole))).toBe(plainKeySet(set(two)));
    expect(plainKeySet(JSON.stringify(one))).toBe(plainKeySet(set(one)));
  });

  it("reads what Envoy cannot read, and what only Envoy reads", () => {
    const told = plainKeySet(set(key));
    const written = JSON.stringify(key);
    for (const text of [
      `{"keys":[],"keys":[${written}]}`,
      `{"keys":[${written}],"more":1e400}`,
      `{"keys":[${written}],"more":${"[".repeat(200)}${"]".repeat(200)}}`,
      `{"keys":[${written.replace("{", '{"kty":"twice",')}]}`,
      set({ ...key, alg: null }),
      set({ ...key, alg: "" }),
      set({ ...key, x: `${key.x}=` }),
    ])
      expect(plainKeySet(text)).toBe(told);
    expect(plainKeySet(set({ ...key, kid: "\ud800" }))).toBe(plainKeySet(set({ ...key, kid: "\ufffd" })));
  });

  it("takes keys of all sorts that Envoy knows, with algorithms that fit", () => {
    const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 }).publicKey.export({ format: "jwk" });
    const okp = generateKeyPairSync("ed25519").publicKey.export({ format: "jwk" });
    const secret = { kty: "oct", k: "c2VjcmV0" };
    for (const good of [rsa, { ...rsa, alg: "PS256" }, okp, { ...okp, alg: "EdDSA" }, { ...key, alg: "ES256" }, secret])
      expect(JSON.parse(plainKeySet(set(good)) ?? "")).toEqual({ keys: [good] });
    const even = Buffer.from(rsa.n ?? "", "base64url");
    even[even.length - 1] = 2;
    for (const bad of [
      { ...rsa, e: "AQ" },
      { ...rsa, n: "AQAB" },
      { ...rsa, n: even.toString("base64url") },
      { ...rsa, alg: "ES256" },
      { ...key, alg: "RS256" },
      { ...key, crv: "P-999" },
      { ...secret, alg: "HS1" },
      { n: rsa.n, e: rsa.e },
    ])
      expect(plainKeySet(set(bad))).toBeUndefined();
  });

  for (const text of ["", "<html>", "[]", "null", set(), set(null), set({ kty: "RSA" }), set({ kty: "oct" }), set({ ...key, x: "AA" })]) {
    it(`has no key of ${JSON.stringify(text).slice(0, 40)}`, () => expect(plainKeySet(text)).toBeUndefined());
  }
});

describe("writtenKeySet", () => {
  const full = { kid: "1", ...key, key_ops: ["verify"] };

  it("leaves what is well written as it is", () => {
    for (const text of [set(full), JSON.stringify({ keys: [full, key] }, undefined, 2), ` ${set({ ...key, kid: 'a "b" \\ c' })}\n`])
      expect(writtenKeySet(text)).toBe(text);
  });

  it("is in plain words where Envoy might not read it, or must not have it", () => {
    const secret = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey.export({ format: "jwk" });
    const written = JSON.stringify(key);
    for (const text of [
      JSON.stringify(key),
      set(secret),
      set(full, { kty: "EC" }),
      set({ ...key, x: `${key.x}=` }),
      set({ ...key, kid: "\ud800" }),
      set({ ...key, more: { deep: 1 } }),
      JSON.stringify({ keys: [key], more: 1 }),
      `{"keys":[],"keys":[${written}]}`,
      `{"keys":[${written.replace("{", '{"kty":"twice",')}]}`,
    ]) {
      expect(plainKeySet(text)).toBeDefined();
      expect(writtenKeySet(text)).toBe(plainKeySet(text));
    }
    expect(writtenKeySet(set({ kty: "EC" }))).toBeUndefined();
  });
});
