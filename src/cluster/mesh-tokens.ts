import { AuthnError } from "../authn/authn-error.ts";
import type { TokenVerifier } from "../authn/token-verifier.ts";

/** Tokens of all clusters of a mesh. */
export interface MeshTokensOptions {
  /** The cluster of this control plane, by its name. */
  readonly own: { readonly cluster: string; readonly tokens: TokenVerifier };
  /** Others, as they are known now. */
  remotes(): ReadonlyMap<string, TokenVerifier>;
}

/**
 * Has each token judged by the cluster that its bearer says it is in, as in Istio: clusters may all call themselves the same as issuers, but each has keys of its own.
 * Who names no cluster is in this control plane's. A token that its own cluster does not know is refused, whatever others would say.
 */
export function meshTokens({ own, remotes }: MeshTokensOptions): TokenVerifier {
  return {
    judges: (issuer) => own.tokens.judges(issuer) || [...remotes().values()].some((one) => one.judges(issuer)),
    async verify(token, said) {
      const cluster = said?.cluster || own.cluster;
      const verifier = cluster === own.cluster ? own.tokens : remotes().get(cluster);
      if (verifier === undefined)
        throw new AuthnError("token issuer", `the caller says it is in cluster ${quote(cluster)}, which this control plane does not know`);
      if (typeof token.claims.iss !== "string" || !verifier.judges(token.claims.iss))
        throw new AuthnError("token issuer", `the token is not of cluster ${quote(cluster)}, which its bearer says it is in`);
      return { ...(await verifier.verify(token, said)), cluster };
    },
  };
}

const quote = (text: string): string => JSON.stringify(text.slice(0, 100));
