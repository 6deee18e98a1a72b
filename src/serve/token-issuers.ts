import { resolve } from "node:path";
import { fetchText } from "../authn/fetch-text.ts";
import { discoveredKeys, fileKeys, inlineKeys, type KeySource, remoteKeys } from "../authn/key-source.ts";
import { oidcVerifier } from "../authn/oidc-verifier.ts";
import type { TokenVerifier } from "../authn/token-verifier.ts";
import type { Clock } from "../base/clock.ts";
import type { ProcessFields } from "../settings/process-fields.ts";

type TokenIssuer = ProcessFields["tokenIssuers"][number];

/** The verifiers for `tokenIssuers` of mesh.yaml. Keys already fetched are kept for issuers that a reload leaves as they are. */
export function tokenIssuers(baseDir: string, clock: Clock): (issuers: readonly TokenIssuer[]) => readonly TokenVerifier[] {
  let known = new Map<string, TokenVerifier>();
  return (issuers) => {
    known = new Map(
      issuers.map((issuer) => {
        const id = JSON.stringify(issuer);
        return [id, known.get(id) ?? verifierOf(issuer, baseDir, clock)];
      }),
    );
    return [...known.values()];
  };
}

function verifierOf(issuer: TokenIssuer, baseDir: string, clock: Clock): TokenVerifier {
  return oidcVerifier({
    issuer: issuer.issuer,
    keys: keysOf(issuer, baseDir, clock),
    audiences: issuer.audiences,
    identity: { namespace: issuer.identity.namespace, serviceAccount: issuer.identity.serviceAccount },
    clock,
  });
}

function keysOf({ issuer, jwks, jwksFile, jwksUri }: TokenIssuer, baseDir: string, clock: Clock): KeySource {
  if (jwks !== undefined && jwks !== "") return inlineKeys(jwks);
  if (jwksFile !== undefined && jwksFile !== "") return fileKeys(resolve(baseDir, jwksFile), clock);
  return jwksUri !== undefined && jwksUri !== "" ? remoteKeys(jwksUri, fetchText, clock) : discoveredKeys(issuer, fetchText, clock);
}
