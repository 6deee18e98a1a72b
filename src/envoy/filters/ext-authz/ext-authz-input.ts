/** An external authorizer (an extension provider of MeshConfig) and how it is asked. */
export type ExtAuthzInput = HttpExtAuthzInput | GrpcExtAuthzInput;

interface ExtAuthzFields {
  /** Cluster of its service. */
  readonly cluster: string;
  /** Host of its service. */
  readonly host: string;
  readonly timeoutMs: number;
  /** Let requests pass when it gives no answer. */
  readonly failOpen: boolean;
  /** Status of requests that are refused because it gave no answer; absent = Envoy's 403. */
  readonly statusOnError?: number;
  /** Choose the route again after it has changed headers. */
  readonly clearRouteCache: boolean;
  /** How much of the body it is shown; absent = none. */
  readonly body?: { readonly maxBytes: number; readonly allowPartial: boolean; readonly packAsBytes: boolean };
}

export interface GrpcExtAuthzInput extends ExtAuthzFields {
  readonly protocol: "grpc";
}

/** Header names may be `exact`, `prefix*` or `*suffix`, in any case. */
export interface HttpExtAuthzInput extends ExtAuthzFields {
  readonly protocol: "http";
  readonly pathPrefix: string;
  /** Headers of the request it is shown. */
  readonly requestHeaders: readonly string[];
  /** Headers added to what it is asked, by name. */
  readonly additionalHeaders: readonly { readonly name: string; readonly value: string }[];
  /** Headers of its answer that go to the application, to a client that is refused, and to one that is let in. */
  readonly upstreamHeaders: readonly string[];
  readonly deniedHeaders: readonly string[];
  readonly allowedHeaders: readonly string[];
}
