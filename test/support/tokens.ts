import { generateKeyPairSync, type JsonWebKey, sign } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";
import { type Clock, systemClock } from "../../src/base/clock.ts";

/** Somebody who issues tokens, with a key pair of its own. */
export interface Issuer {
  readonly name: string;
  /** The public key as a key set. */
  readonly jwks: string;
  /** A token with these claims on top of issuer and an expiry in an hour. */
  token(claims: Readonly<Record<string, unknown>>): string;
}

const HOUR_S = 3_600;

/** Makes an issuer. Tokens are signed with ES256. */
export function createIssuer(name: string, clock: Pick<Clock, "now"> = systemClock): Issuer {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const key: JsonWebKey = { ...publicKey.export({ format: "jwk" }), kid: name, alg: "ES256" };
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");
  return {
    name,
    jwks: JSON.stringify({ keys: [key] }),
    token(claims) {
      const payload = { iss: name, sub: "alice", exp: Math.floor(clock.now() / 1_000) + HOUR_S, ...claims };
      const signed = `${part({ alg: "ES256", typ: "JWT", kid: name })}.${part(payload)}`;
      return `${signed}.${sign("sha256", Buffer.from(signed), { key: privateKey, dsaEncoding: "ieee-p1363" }).toString("base64url")}`;
    },
  };
}

/** A server that hands out the keys of an issuer. */
export async function keyServer({ jwks }: Issuer): Promise<{ readonly port: number }> {
  const server = createServer((_, response) => response.end(jwks));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  return { port: (server.address() as AddressInfo).port };
}
