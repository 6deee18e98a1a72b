/** Why a caller is not known; a closed list, since it is counted by it. */
export type AuthnReason =
  | "no credentials"
  | "token too large"
  | "token malformed"
  | "token algorithm"
  | "token issuer"
  | "token keys"
  | "token signature"
  | "token expired"
  | "token audience"
  | "token used"
  | "too many tokens"
  | "certificate"
  | "identity";

/** A caller did not prove who it is. The message may be shown to it: it holds nothing of the token, and nothing of what we know. */
export class AuthnError extends Error {
  override readonly name = "AuthnError";
  readonly reason: AuthnReason;

  constructor(reason: AuthnReason, message: string) {
    super(message);
    this.reason = reason;
  }
}
