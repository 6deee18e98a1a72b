import { resolve } from "node:path";
import { createFetchText, type FetchText } from "../authn/fetch-text.ts";
import { discoveredKeys, fileKeys, inlineKeys, type KeySource, remoteKeys } from "../authn/key-source.ts";
import { oidcVerifier } from "../authn/oidc-verifier.ts";
import type { TokenVerifier } from "../authn/token-verifier.ts";
import type { Clock } from "../base/clock.ts";
import type { ProxyRules } from "../base/environment-proxy.ts";
import type { ProcessFields } from "../settings/process-fields.ts";

type TokenIssuer = ProcessFields["tokenIssuers"][number];

export interface IssuerOptions {
  readonly baseDir: string;
  readonly clock: Clock;
  /** Proxies that keys are fetched through. */
  readonly proxies: ProxyRules;
}

type Parts = IssuerOptions & { readonly fetchText: FetchText };

/** The verifiers for `tokenIssuers` of mesh.yaml. Keys already fetched are kept for issuers that a reload leaves as they are. */
export function tokenIssuers(given: IssuerOptions): (issuers: readonly TokenIssuer[]) => readonly TokenVerifier[] {
  const parts = { ...given, fetchText: createFetchText({ proxies: given.proxies }) };
  let known = new Map<string, TokenVerifier>();
  return (issuers) => {
    known = new Map(
      issuers.map((issuer) => {
        const id = JSON.stringify(issuer);
        return [id, known.get(id) ?? verifierOf(issuer, parts)];
      }),
    );
    return [...known.values()];
  };
}

function verifierOf(issuer: TokenIssuer, parts: Parts): TokenVerifier {
  return oidcVerifier({
    issuer: issuer.issuer,
    keys: keysOf(issuer, parts),
    audiences: issuer.audiences,
    identity: { namespace: issuer.identity.namespace, serviceAccount: issuer.identity.serviceAccount },
    clock: parts.clock,
  });
}

function keysOf({ issuer, jwks, jwksFile, jwksUri }: TokenIssuer, { baseDir, clock, fetchText }: Parts): KeySource {
  if (jwks !== undefined && jwks !== "") return inlineKeys(jwks);
  if (jwksFile !== undefined && jwksFile !== "") return fileKeys(resolve(baseDir, jwksFile), clock);
  return jwksUri !== undefined && jwksUri !== "" ? remoteKeys(jwksUri, fetchText, clock) : discoveredKeys(issuer, fetchText, clock);
}
