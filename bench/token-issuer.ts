import { generateKeyPairSync, sign } from "node:crypto";
import { appendFile, readFile } from "node:fs/promises";
import { join } from "node:path";
import { systemClock } from "../src/base/clock.ts";
import type { SecureCall } from "./grpc-stream.ts";
import type { SceneProxy } from "./scene.ts";

const ISSUER = "https://bench.example.com";
const SERVER_NAME = "istiod.istio-system.svc";
const DAY_S = 86_400;

/** Somebody who vouches for the proxies of a scene. */
export interface TokenIssuer {
  /** Makes a control plane believe it, before it starts. */
  introduce(home: string): Promise<void>;
  tokenFor(namespace: string, serviceAccount: string): string;
  /** How the proxies of a scene call a control plane that has made its root. */
  callsTo(home: string): Promise<(proxy: Pick<SceneProxy, "namespace" | "app">) => SecureCall>;
}

/** Makes an issuer whose tokens are signed with RS256, as those of Kubernetes are. */
export function createTokenIssuer(): TokenIssuer {
  const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");
  const tokenFor = (namespace: string, serviceAccount: string): string => {
    const exp = Math.floor(systemClock.now() / 1_000) + DAY_S;
    const claims = { iss: ISSUER, aud: ["istio-ca"], sub: `system:serviceaccount:${namespace}:${serviceAccount}`, exp };
    const signed = `${part({ alg: "RS256", kid: "bench" })}.${part(claims)}`;
    return `${signed}.${sign("sha256", Buffer.from(signed), privateKey).toString("base64url")}`;
  };
  const jwks = JSON.stringify({ keys: [{ ...publicKey.export({ format: "jwk" }), kid: "bench", alg: "RS256" }] });
  return {
    introduce: (home) => appendFile(join(home, "etc/istio/mesh.yaml"), `tokenIssuers: [{issuer: "${ISSUER}", jwks: '${jwks}'}]\n`),
    tokenFor,
    async callsTo(home) {
      const roots = await readFile(join(home, "etc/cacerts/root-cert.pem"), "utf8");
      return ({ namespace, app }) => ({ roots, serverName: SERVER_NAME, token: tokenFor(namespace, app) });
    },
  };
}
