/** Properties of who calls. */
export type PrincipalAttribute =
  /** Peer identity without its scheme: `cluster.local/ns/shop/sa/web`. */
  | { readonly kind: "principal" }
  /** Namespace in the peer identity. */
  | { readonly kind: "namespace" }
  /** `namespace/account` in the peer identity, whatever the trust domain. */
  | { readonly kind: "serviceAccount" }
  /** Trust domain of the peer identity. */
  | { readonly kind: "trustDomain" }
  /** Address of the other end of the connection. */
  | { readonly kind: "peerAddress" }
  /** Address of the client, as far as proxies in between are believed. */
  | { readonly kind: "clientAddress" }
  /** `issuer/subject` of the token. */
  | { readonly kind: "requestPrincipal" }
  /** A claim of the token, or an entry of it where it is a list. */
  | { readonly kind: "claim"; readonly path: readonly string[] }
  | { readonly kind: "header"; readonly name: string };

/** Properties of what is called. */
export type PermissionAttribute =
  | { readonly kind: "host" | "method" | "path" | "port" | "destinationAddress" | "serverName" }
  /** Something a filter in front left about the connection or request. */
  | { readonly kind: "metadata"; readonly filter: string; readonly key: string };

/**
 * A demand on one attribute: one of `values` (where there are any) and none of `notValues`. Texts are `exact`, `prefix*`, `*suffix` or `*`
 * for anything that is there; addresses are ranges; ports are numbers. Everything but the `*` is literal.
 */
export interface AttributeMatch<A> {
  readonly attribute: A;
  readonly values: readonly string[];
  readonly notValues: readonly string[];
}

/** A rule: some source and some operation must match, each with all its demands. No demands: anything. At least one of each is given. */
export interface RuleInput {
  readonly sources: readonly (readonly AttributeMatch<PrincipalAttribute>[])[];
  readonly operations: readonly (readonly AttributeMatch<PermissionAttribute>[])[];
}

/** A rule under the name that logs, statistics and denials show. */
export interface NamedRule {
  readonly name: string;
  readonly rule: RuleInput | "never";
}

/** What a match means. CUSTOM policies deny in shadow: the name of the match calls the external authorizer. */
export type RbacAction = "ALLOW" | "DENY" | "LOG";

/** All that may influence one RBAC filter. Absent rules are no filter of that sort; an empty list with ALLOW denies everything. */
export interface RbacInput {
  readonly action: RbacAction;
  readonly rules?: readonly NamedRule[];
  /** Rules that are tried and reported, but decide nothing. */
  readonly shadowRules?: readonly NamedRule[];
  /** What the names of shadow results begin with. */
  readonly shadowPrefix?: string;
}

/** What the filter looks at: requests, or connections, which have no HTTP attributes. */
export type RbacLayer = "http" | "network";
