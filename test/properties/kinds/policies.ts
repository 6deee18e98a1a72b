import type { JsonObject } from "@bufbuild/protobuf";
import fc from "fast-check";
import type { Make } from "../doc.ts";
import { docOf, duration, joined, list, NAMESPACE, oneField, pick, selector, some, someOf, texts, whole } from "./values.ts";

const mode = whole({ mode: pick("UNSET", "DISABLE", "PERMISSIVE", "STRICT") });

/** For all of the namespace, or for some workloads and then also by port. */
export const peerAuthentication: fc.Arbitrary<Make> = fc
  .oneof(
    some({ mtls: mode }),
    joined(
      whole({ selector: pick<JsonObject>({ matchLabels: { app: "web" } }) }),
      some({ mtls: mode, portLevelMtls: fc.dictionary(pick("80", "8080", "5000"), mode, { minKeys: 1, noNullPrototype: true }) }),
    ),
  )
  .map((spec) => docOf("PeerAuthentication", spec));

const KEYS = JSON.stringify({ keys: [{ kty: "oct", kid: "k", k: "AAAA" }] });
const jwtRule = joined(
  whole({ issuer: pick("issuer.test", "https://issuer.test/?a=b") }),
  fc.oneof(
    pick<JsonObject>({}, { jwks: KEYS }, { jwksUri: "https://issuer.test/keys" }, { jwksUri: "http://h0.test:80/keys" }),
    pick<JsonObject>({ jwksUri: "http://kube.a.svc.cluster.local/keys" }),
  ),
  some({
    audiences: texts(["one", "two"]),
    fromHeaders: list(joined(whole({ name: pick("x-jwt", "Authorization") }), some({ prefix: pick("Bearer ", "JWT-") })), [1, 2]),
    fromParams: texts(["token", "t"]),
    fromCookies: texts(["session"]),
    outputPayloadToHeader: pick("x-payload"),
    forwardOriginalToken: fc.boolean(),
    outputClaimToHeaders: pick<JsonObject[]>([{ header: "x-sub", claim: "sub" }], [{ header: "x-in", claim: "a.b" }]),
    timeout: duration,
    spaceDelimitedClaims: texts(["roles"]),
  }),
);

export const requestAuthentication: fc.Arbitrary<Make> = whole({ selector, jwtRules: list(jwtRule, [0, 3]) }).map((spec) =>
  docOf("RequestAuthentication", spec),
);

const patterns = ["*", "exact", "pre*", "*fix"];
const blocks = texts(["10.0.0.0/8", "10.1.2.3", "2001:db8::/32", "::1"]);
/** Sides with a negation beside them. */
const bothWays = (fields: Readonly<Record<string, fc.Arbitrary<unknown>>>): fc.Arbitrary<JsonObject> =>
  someOf({
    ...fields,
    ...Object.fromEntries(Object.entries(fields).map(([name, value]) => [`not${name.charAt(0).toUpperCase()}${name.slice(1)}`, value])),
  });

const source = fc.oneof(
  bothWays({
    principals: texts(["*", "cluster.local/ns/a/sa/x", "*/sa/x", "td/ns/*"]),
    requestPrincipals: texts(["*", "issuer.test/sub", "*/sub", "issuer.test/*"]),
    namespaces: texts(patterns),
    ipBlocks: blocks,
    remoteIpBlocks: blocks,
    trustDomains: texts(["td", "*"]),
  }),
  bothWays({ serviceAccounts: texts(["x", "a/x", "b/y"]) }),
);
const operation = bothWays({
  hosts: texts(["h0.test", "*.wild.test", "h*", "H0.TEST:80"]),
  ports: texts(["80", "65535"]),
  methods: texts(["GET", "*", "P*"]),
  paths: texts(["/", "/a*", "*/z", "/t/{*}/x", "/t/{**}", "/a%20b"]),
});
const condition = fc
  .tuple(
    pick<JsonObject>(
      { key: "request.headers[x-a]", is: ["*", "exact", "pre*"] },
      { key: "source.ip", is: ["10.0.0.0/8", "::1"] },
      { key: "remote.ip", is: ["10.1.2.3"] },
      { key: "source.namespace", is: ["a", "pre*"] },
      { key: "source.principal", is: ["cluster.local/ns/a/sa/x"] },
      { key: "request.auth.claims[a][b]", is: ["x", "*fix"] },
      { key: "request.auth.audiences", is: ["aud"] },
      { key: "destination.ip", is: ["10.1.0.0/16"] },
      { key: "destination.port", is: ["80", "1"] },
      { key: "connection.sni", is: ["h0.test", "*.test"] },
    ),
    fc.boolean(),
  )
  .map(([{ key, is }, negated]): JsonObject => ({ key: key ?? "", [negated ? "notValues" : "values"]: is ?? [] }));
const rule = some({
  from: list(whole({ source }), [1, 2]),
  to: list(whole({ operation }), [1, 2]),
  when: list(condition, [1, 2]),
});

const asking = { action: pick("CUSTOM"), provider: whole({ name: pick("asks-http", "asks-grpc") }) };
/** What may be asked about before anybody's identity is known. */
const anonymousRule = some({
  from: list(whole({ source: bothWays({ ipBlocks: blocks, remoteIpBlocks: blocks }) }), [1, 2]),
  to: list(whole({ operation }), [1, 2]),
});

/** Of every action; those that ask a provider name one that the mesh has. */
export const authorizationPolicy: fc.Arbitrary<Make> = joined(
  whole({ selector }),
  fc.oneof(
    { arbitrary: whole({ action: pick("ALLOW", "DENY", "AUDIT"), rules: list(rule, [1, 3]) }), weight: 4 },
    { arbitrary: pick<JsonObject>({}, { action: "ALLOW", rules: [] }), weight: 1 },
    { arbitrary: whole({ ...asking, rules: list(anonymousRule, [1, 2]) }), weight: 2 },
  ),
).map((spec) => docOf("AuthorizationPolicy", spec));

const side = whole({ mode: pick("CLIENT", "SERVER", "CLIENT_AND_SERVER") });
const providers = (...names: readonly string[]): fc.Arbitrary<JsonObject[]> =>
  texts(names).map((all) => all.map((name): JsonObject => ({ name })));
const tag = oneField({
  literal: whole({ value: pick("x") }),
  environment: joined(whole({ name: pick("HOME") }), some({ defaultValue: pick("") })),
  header: joined(whole({ name: pick("x-a") }), some({ defaultValue: pick("none") })),
  formatter: whole({ value: pick("%REQ(x-a)%", "100%%") }),
});
const tracing = some({
  match: side,
  providers: fc.oneof(providers("zipkin"), providers("spans")),
  randomSamplingPercentage: pick(0, 0.01, 100),
  disableSpanReporting: fc.boolean(),
  customTags: fc.dictionary(pick("one", "tag two"), tag, { noNullPrototype: true }),
  useRequestIdForTraceSampling: fc.boolean(),
  enableIstioTags: fc.boolean(),
  disableContextPropagation: fc.boolean(),
});
const metrics = some({
  providers: providers("prometheus"),
  reportingInterval: pick("1s", "1m"),
  overrides: list(
    some({
      match: joined(oneField({ metric: pick("ALL_METRICS", "REQUEST_COUNT", "TCP_SENT_BYTES") }), some({ mode: pick("CLIENT", "SERVER") })),
      disabled: fc.boolean(),
      tagOverrides: pick<JsonObject>(
        { request_host: { operation: "REMOVE" } },
        { extra: { value: "request.headers['x-a']" } },
        { odd: { operation: "UPSERT", value: "'a' + request.method" } },
      ),
    }),
    [1, 2],
  ),
});
const accessLogging = some({
  match: side,
  providers: providers("stdout", "json", "records"),
  disabled: fc.boolean(),
  filter: whole({ expression: pick("response.code >= 400", "has(request.path) && connection.mtls", "true") }),
});

export const telemetry: fc.Arbitrary<Make> = joined(
  whole({ selector }),
  some({ tracing: list(tracing, [1, 1]), metrics: list(metrics, [1, 2]), accessLogging: list(accessLogging, [1, 2]) }),
).map((spec) => docOf("Telemetry", spec));

/** What the policies above name. */
export const PROVIDERS: readonly JsonObject[] = [
  { name: "asks-http", envoyExtAuthzHttp: { service: "h0.test", port: 80, includeRequestHeadersInCheck: ["x-a"] } },
  { name: "asks-grpc", envoyExtAuthzGrpc: { service: `kube.${NAMESPACE}.svc.cluster.local`, port: 80 } },
  { name: "zipkin", zipkin: { service: "h0.test", port: 80 } },
  { name: "spans", opentelemetry: { service: "h1.test", port: 80 } },
  { name: "records", envoyOtelAls: { service: "h0.test", port: 80 } },
  { name: "stdout", envoyFileAccessLog: { path: "/dev/stdout" } },
  { name: "json", envoyFileAccessLog: { path: "/dev/stdout", logFormat: { labels: { status: "%RESPONSE_CODE%", odd: "100%%" } } } },
  { name: "prometheus", prometheus: {} },
];
