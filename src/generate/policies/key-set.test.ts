import { generateKeyPairSync } from "node:crypto";
import { describe, expect, it } from "vitest";
import { plainKeySet, usableKeySet } from "./key-set.ts";

const key = generateKeyPairSync("ec", { namedCurve: "P-256" }).publicKey.export({ format: "jwk" });
const set = (...keys: readonly unknown[]): string => JSON.stringify({ keys });

describe("usableKeySet", () => {
  it("keeps a set as it is written", () => expect(usableKeySet(` ${set(key)} `)).toBe(` ${set(key)} `));

  it("keeps a set with one good key among bad ones", () => expect(usableKeySet(set({ kty: "EC" }, key))).toBe(set({ kty: "EC" }, key)));

  it("makes a set of a lone key", () => expect(usableKeySet(JSON.stringify(key))).toBe(set(key)));

  it("takes a shared secret", () => expect(usableKeySet(set({ kty: "oct", k: "c2VjcmV0" }))).toBeDefined());

  it("takes keys of all sorts that Envoy knows, with algorithms that fit", () => {
    const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 }).publicKey.export({ format: "jwk" });
    const okp = generateKeyPairSync("ed25519").publicKey.export({ format: "jwk" });
    for (const good of [rsa, { ...rsa, alg: "PS256" }, okp, { ...okp, alg: "EdDSA" }, { ...key, alg: "ES256" }])
      expect(usableKeySet(set(good))).toBeDefined();
    const even = Buffer.from(rsa.n ?? "", "base64url");
    even[even.length - 1] = 2;
    for (const bad of [
      { ...rsa, e: "AQ" },
      { ...rsa, n: "AQAB" },
      { ...rsa, n: even.toString("base64url") },
      { ...rsa, n: `${rsa.n}==` },
      { ...rsa, alg: "ES256" },
      { ...key, alg: "RS256" },
      { ...key, crv: "P-999" },
      { n: rsa.n, e: rsa.e },
    ])
      expect(usableKeySet(set(bad))).toBeUndefined();
  });

  for (const text of ["", "no JSON", "[]", "null", set(), set(null), set({ kty: "RSA" }), set({ kty: "oct" }), set({ ...key, x: "AA" })]) {
    it(`refuses ${JSON.stringify(text).slice(0, 40)}`, () => expect(usableKeySet(text)).toBeUndefined());
  }
});

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

  it("holds nothing but what makes a key, and is none where there is no key", () => {
    const whole = { ...other.privateKey.export({ format: "jwk" }), kid: "2", x5c: ["chain"] };
    expect(plainKeySet(set(whole))).toBe(plainKeySet(set(two)));
    expect(plainKeySet(JSON.stringify(one))).toBe(plainKeySet(set(one)));
    expect(plainKeySet("<html>")).toBeUndefined();
  });
});
