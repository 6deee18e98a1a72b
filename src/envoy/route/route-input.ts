import type { Session } from "../../model/session.ts";

/** How a text is compared. `regex` is RE2 and matches the whole text. */
export interface TextMatch {
  readonly kind: "exact" | "prefix" | "regex";
  readonly value: string;
}

export interface HeaderMatch {
  readonly name: string;
  /** Undefined: the header must merely be present. */
  readonly match: TextMatch | undefined;
  readonly invert: boolean;
}

export interface MatchInput {
  readonly path: TextMatch | undefined;
  readonly caseSensitive: boolean | undefined;
  readonly headers: readonly HeaderMatch[];
  readonly queryParams: readonly { readonly name: string; readonly match: TextMatch | undefined }[];
  /** Conditions on the claims of a validated token (`@request.auth.claims.…`): read from the metadata the JWT filter writes. */
  readonly claims: readonly ClaimMatch[];
}

export interface ClaimMatch {
  readonly path: readonly string[];
  /** Undefined asks only that the claim is there. */
  readonly match: TextMatch | undefined;
  readonly invert: boolean;
}

export interface HeaderChange {
  readonly name: string;
  readonly value: string;
  readonly append: boolean;
}

export interface HeaderChanges {
  readonly add: readonly HeaderChange[];
  readonly remove: readonly string[];
}

export const NO_HEADER_CHANGES: HeaderChanges = { add: [], remove: [] };

export interface DestinationInput {
  readonly cluster: string;
  readonly weight: number;
  readonly request: HeaderChanges;
  readonly response: HeaderChanges;
  readonly hostRewrite: string | undefined;
}

export interface RetryInput {
  readonly attempts: number;
  readonly perTryTimeoutMs: number | undefined;
  readonly retryOn: string;
  readonly statusCodes: readonly number[];
  readonly otherLocalities: boolean;
  readonly avoidPreviousHosts: boolean;
  readonly backOffMs: number | undefined;
}

/** A share of requests: whole per cents, or parts per million where tenths of a per cent must survive. */
export interface Share {
  readonly numerator: number;
  readonly of: "hundred" | "million";
}

export interface MirrorInput {
  readonly cluster: string;
  readonly share: Share;
}

export interface RewriteInput {
  readonly prefix: string | undefined;
  readonly regex: { readonly pattern: string; readonly substitution: string } | undefined;
  readonly authority: string | undefined;
}

export type HashPolicyInput =
  | { readonly kind: "header" | "queryParam"; readonly name: string }
  | {
      readonly kind: "cookie";
      readonly name: string;
      readonly path: string;
      readonly ttlMs: number | undefined;
      readonly attributes: readonly { readonly name: string; readonly value: string }[];
    }
  | { readonly kind: "sourceIp" }
  /** The channel a gRPC client made the call on: what stands for its address where there is no proxy to see it. */
  | { readonly kind: "grpcChannel" };

export type ActionInput =
  | {
      readonly kind: "route";
      readonly destinations: readonly DestinationInput[];
      readonly timeoutMs: number;
      /** The same limit in the field gRPC clients read; Envoy would end streams by it. */
      readonly maxStreamMs?: number;
      readonly retry: RetryInput | undefined;
      readonly rewrite: RewriteInput | undefined;
      readonly mirrors: readonly MirrorInput[];
      readonly hashPolicies: readonly HashPolicyInput[];
      /** Tell the server the host the client asked for, where it is rewritten (ProxyConfig proxyHeaders.xForwardedHost). */
      readonly forwardHost?: boolean;
    }
  | {
      readonly kind: "redirect";
      readonly path: string;
      readonly prefixRewrite: string | undefined;
      readonly authority: string;
      readonly scheme: string;
      readonly port: number | undefined;
      readonly code: number;
    }
  | {
      readonly kind: "directResponse";
      readonly status: number;
      readonly body: { readonly text?: string; readonly bytes?: string } | undefined;
    };

export interface CorsInput {
  readonly origins: readonly TextMatch[];
  readonly methods: string;
  readonly headers: string;
  readonly exposeHeaders: string;
  readonly maxAgeSeconds: string;
  readonly credentials: boolean | undefined;
  readonly forwardUnmatchedPreflights: boolean;
}

export interface FaultInput {
  readonly delay: { readonly ms: number; readonly share: Share } | undefined;
  /** No share given: nothing is aborted, as the Istio API has it. */
  readonly abort:
    | { readonly status: { readonly kind: "http" | "grpc"; readonly code: number }; readonly share: Share | undefined }
    | undefined;
}

/** All that decides one route. */
export interface RouteInput {
  readonly name: string;
  readonly match: MatchInput;
  readonly action: ActionInput;
  readonly request: HeaderChanges;
  readonly response: HeaderChanges;
  readonly cors: CorsInput | undefined;
  readonly fault: FaultInput | undefined;
  /** How its requests are kept at one endpoint; absent where they are not. */
  readonly session?: Session;
  readonly statPrefix: string;
  /** What traces call the operation. */
  readonly operation: string;
  /** The object the rule was written in, as an API path: shown by `proxy-config` and in dumps. */
  readonly origin: string | undefined;
}

/** A virtual host without its domains: those differ by the caller's namespace, the rest is shared by all. */
export interface VirtualHostInput {
  readonly name: string;
  readonly routes: readonly RouteInput[];
  readonly requireTls: boolean;
  readonly includeAttemptCount: boolean;
  /** For routes that say nothing of their own. */
  readonly session?: Session;
}
