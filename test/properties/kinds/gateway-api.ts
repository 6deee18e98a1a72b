import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import fc from "fast-check";
import type { Doc, Make } from "../doc.ts";
import { joined, list, NAMESPACE, oneField, pick, some, texts, whole } from "./values.ts";

/*
 * What Kubernetes itself has for routes. The API server has judged such objects, so any value of the right shape may stand in them, whether it means something or not.
 */

const GROUP = "gateway.networking.k8s.io";
/** Numbers that fit no 32 bits, fractions, and names that every object of JavaScript has: to be kept as they are. */
const odd = pick<JsonValue>(null, -1, 0.5, 1e300, 9_007_199_254_740_991, "", "%", "\u0000", "constructor", [], [[]], {}, { toString: 1 });
const HOSTS = ["h0.test", "*.wild.test", "kube.a.svc.cluster.local", "xn--nin-qla.test"];

const reference = joined(
  whole({ name: pick("kube", "edge-0", "nowhere", "h0.test") }),
  some({
    group: pick("", GROUP, "networking.istio.io"),
    kind: pick("Service", "Gateway", "ServiceEntry", "Hostname", "Mesh"),
    namespace: pick(NAMESPACE, "b"),
    port: pick(80, 443, 5000, 65_535),
    sectionName: pick("http-80", "*"),
    weight: pick(0, 1, 1_000_000),
  }),
);
const headerMatch = joined(
  whole({ name: pick("x-a", ":path", "X-Mixed"), value: pick("a b", "^.*$", "ünïcode") }),
  some({ type: pick("Exact", "RegularExpression") }),
);
const httpMatch = some({
  path: joined(whole({ value: pick("/", "/a%20b", "/a//b") }), some({ type: pick("Exact", "PathPrefix", "RegularExpression") })),
  headers: list(headerMatch, [1, 2]),
  queryParams: list(headerMatch, [1, 2]),
  method: pick("GET", "CONNECT", "get"),
});
const grpcMatch = some({
  method: some({ service: pick("a.B", ".*"), method: pick("C"), type: pick("Exact", "RegularExpression") }),
  headers: list(headerMatch, [1, 1]),
});
const changed = some({ set: list(whole({ name: pick("x-a"), value: pick("%REQ(x)%", "") }), [1, 2]), remove: texts(["x-b", "host"]) });
const filter = oneField({
  requestHeaderModifier: changed,
  responseHeaderModifier: changed,
  requestMirror: whole({ backendRef: reference }),
  requestRedirect: some({ scheme: pick("https"), hostname: pick("else.test"), port: pick(8443), statusCode: pick(301, 308) }),
  urlRewrite: some({ hostname: pick("else.test"), path: whole({ type: pick("ReplacePrefixMatch"), replacePrefixMatch: pick("/", "") }) }),
  cors: odd,
});
const backends = list(joined(reference, some({ filters: list(filter, [1, 1]) })), [0, 3]);
const timeouts = some({ request: pick("0s", "1h30m", "5ms"), backendRequest: pick("1s") });

const routeOf = (rule: fc.Arbitrary<JsonObject>): fc.Arbitrary<JsonObject> =>
  some({ parentRefs: list(reference, [0, 2]), hostnames: texts(HOSTS), rules: list(rule, [0, 3]), odd });

const listener = joined(
  whole({
    name: pick("http-80", "s", "*"),
    port: pick(80, 443, 5000, 0),
    protocol: pick("HTTP", "HTTPS", "TLS", "TCP", "UDP", "example.com/x"),
  }),
  some({
    hostname: pick(...HOSTS),
    tls: some({ mode: pick("Terminate", "Passthrough"), certificateRefs: list(reference, [0, 2]), options: odd }),
    allowedRoutes: some({
      namespaces: whole({ from: pick("All", "Same", "Selector") }),
      kinds: list(whole({ kind: pick("HTTPRoute") }), [0, 1]),
    }),
  }),
);
const SPECS: Readonly<Record<string, fc.Arbitrary<JsonObject>>> = {
  Gateway: some({ gatewayClassName: pick("istio", "nobody's"), listeners: list(listener, [0, 3]), addresses: odd, odd }),
  HTTPRoute: routeOf(
    some({ matches: list(httpMatch, [0, 2]), filters: list(filter, [0, 2]), backendRefs: backends, timeouts, retry: odd }),
  ),
  GRPCRoute: routeOf(some({ matches: list(grpcMatch, [0, 2]), filters: list(filter, [0, 1]), backendRefs: backends })),
  TCPRoute: routeOf(some({ backendRefs: backends })),
  TLSRoute: routeOf(some({ backendRefs: backends })),
  ReferenceGrant: some({
    from: list(whole({ group: pick(GROUP), kind: pick("HTTPRoute", "Gateway"), namespace: pick(NAMESPACE, "b") }), [0, 2]),
    to: list(joined(whole({ group: pick(""), kind: pick("Secret", "Service") }), some({ name: pick("cert") })), [0, 2]),
  }),
  BackendTLSPolicy: some({
    targetRefs: list(reference, [0, 2]),
    validation: some({
      hostname: pick(...HOSTS),
      caCertificateRefs: list(reference, [0, 1]),
      wellKnownCACertificates: pick("System"),
      subjectAltNames: list(some({ type: pick("Hostname", "URI"), hostname: pick("h0.test"), uri: pick("spiffe://td/ns/a/sa/x") }), [0, 2]),
    }),
    options: odd,
  }),
};

const kubernetesDoc = ([group, kind, name]: readonly [string, string, string], spec: JsonValue): Doc => ({
  apiVersion: `${group}/v1`,
  kind,
  metadata: { name, namespace: NAMESPACE, creationTimestamp: "2026-01-01T00:00:00Z" },
  spec,
});

/** An object of the Gateway API, which may have the name of one of Istio's. */
export const gatewayApiObject: fc.Arbitrary<Make> = fc.oneof(
  ...Object.entries(SPECS).map(([kind, spec]) =>
    spec.map(
      (one): Make =>
        (index) =>
          kubernetesDoc([GROUP, kind, kind === "Gateway" ? `edge-${index}` : `${kind.toLowerCase()}-${index}`], one),
    ),
  ),
);

const backend = whole({
  service: whole({ name: pick("kube", "nowhere"), port: oneField({ number: pick(80, 65_535), name: pick("http") }) }),
});
const ingressRule = some({
  host: pick(...HOSTS),
  http: whole({
    paths: list(
      joined(whole({ backend }), some({ path: pick("/", "/a.*", ""), pathType: pick("Exact", "Prefix", "ImplementationSpecific") })),
      [0, 2],
    ),
  }),
});

export const ingress: fc.Arbitrary<Make> = some({
  ingressClassName: pick("istio", "other"),
  defaultBackend: backend,
  rules: list(ingressRule, [0, 2]),
  tls: list(some({ hosts: texts(HOSTS), secretName: pick("cert", "nowhere") }), [0, 2]),
}).map((spec) => (index) => kubernetesDoc(["networking.k8s.io", "Ingress", `ingress-${index}`], spec));
