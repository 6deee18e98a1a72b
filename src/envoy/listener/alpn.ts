/** What the HTTP inspector finds plain HTTP to be. */
export const PLAIN_HTTP = ["http/1.1", "h2c"] as const;

/** The same where HTTP/1.0 is served. Elsewhere it passes as bytes, which beats being refused. */
export const PLAIN_HTTP_FROM_1_0 = ["http/1.0", ...PLAIN_HTTP] as const;

/** ALPN tokens by which Istio's sidecars say what is inside their mutual TLS: HTTP, bytes, or either. */
export const HTTP_IN_MTLS = ["istio-http/1.0", "istio-http/1.1", "istio-h2"] as const;
export const TCP_IN_MTLS = ["istio-peer-exchange", "istio"] as const;
export const ANY_IN_MTLS = ["istio", "istio-peer-exchange", ...HTTP_IN_MTLS] as const;
