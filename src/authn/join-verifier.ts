import type { KeyObject } from "node:crypto";
import type { Clock } from "../base/clock.ts";
import { JOIN_ISSUER } from "../base/join-issuer.ts";
import type { Secret } from "../base/secret.ts";
import { AuthnError } from "./authn-error.ts";
import { joinKeySet } from "./join-token.ts";
import { inlineKeys } from "./key-source.ts";
import { oidcVerifier } from "./oidc-verifier.ts";
import type { TokenVerifier } from "./token-verifier.ts";
import { spent, type UsedTokens } from "./used-tokens.ts";

export interface JoinVerifierOptions {
  readonly key: Secret<KeyObject>;
  readonly used: UsedTokens;
  readonly clock: Clock;
}

/** Believes the join tokens of this control plane, until each has got its bearer a certificate. */
export function joinVerifier({ key, used, clock }: JoinVerifierOptions): TokenVerifier {
  const inner = oidcVerifier({
    issuer: JOIN_ISSUER,
    keys: inlineKeys(joinKeySet(key.reveal())),
    audiences: [],
    identity: { namespace: undefined, serviceAccount: undefined },
    clock,
  });
  return {
    judges: inner.judges,
    async verify(token) {
      const identity = await inner.verify(token);
      const { jti, exp } = token.claims;
      if (typeof jti !== "string" || jti === "" || typeof exp !== "number")
        throw new AuthnError("token malformed", "the join token has no id");
      if (used.isUsed(jti)) throw spent();
      return { ...identity, once: { take: () => used.take(jti, exp * 1_000), giveBack: () => used.giveBack(jti) } };
    },
  };
}
