/** Issuer of join tokens, which are good for one certificate: what a control plane signs for machines, and what an agent knows such a token by. */
export const JOIN_ISSUER = "istiod";
