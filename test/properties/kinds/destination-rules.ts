import type { JsonObject } from "@bufbuild/protobuf";
import fc from "fast-check";
import type { Make } from "../doc.ts";
import { docOf, duration, HOSTS, joined, list, oneField, pick, port, SUBSETS, selector, some, someOf, texts, whole } from "./values.ts";

/** Upgrading and following the client exclude each other. */
function protocol(): fc.Arbitrary<JsonObject> {
  return fc.oneof(
    pick<JsonObject>({}, { h2UpgradePolicy: "UPGRADE" }),
    some({ h2UpgradePolicy: pick("DEFAULT", "DO_NOT_UPGRADE"), useClientProtocol: fc.boolean() }),
  );
}

const tcp = some({
  maxConnections: pick(1, 2_147_483_647),
  connectTimeout: duration,
  tcpKeepalive: some({ probes: pick(1, 9), time: pick("1s", "7200s"), interval: pick("1s", "75s") }),
  maxConnectionDuration: duration,
  idleTimeout: duration,
});
const http = joined(
  protocol(),
  some({
    http1MaxPendingRequests: pick(1, 2_147_483_647),
    http2MaxRequests: pick(1, 1024),
    maxRequestsPerConnection: pick(0, 1, 10),
    maxRetries: pick(1, 1_000),
    idleTimeout: duration,
    maxConcurrentStreams: pick(1, 100),
  }),
);

/** Of a pool at least one part must be there. */
export const connectionPool = fc.oneof(whole({ tcp }), whole({ http }), whole({ tcp, http }));

const hashed = joined(
  oneField({
    httpHeaderName: pick("x-user", "X-Odd_Header"),
    httpCookie: joined(whole({ name: pick("user") }), some({ path: pick("/", ""), ttl: pick("0s", "1h") })),
    useSourceIp: pick(true),
    httpQueryParameterName: pick("q", "q[]"),
  }),
  fc.oneof(
    pick<JsonObject>({}),
    oneField({
      ringHash: some({ minimumRingSize: pick(1, 1_024, 8_388_608) }),
      maglev: some({ tableSize: pick(65_537, 5_000_011) }),
      minimumRingSize: pick(1, 2_048),
    }),
  ),
);
const locality = fc.oneof(
  pick<JsonObject>(
    { enabled: false },
    { enabled: true },
    { distribute: [{ from: "r1/z1/*", to: { "r1/z1/*": 80, "r2/*": 20 } }] },
    { failover: [{ from: "r1", to: "r2" }] },
    { failoverPriority: ["topology.kubernetes.io/region", "version=v1"], enabled: true },
  ),
);
const loadBalancer = joined(
  oneField({ simple: pick("UNSPECIFIED", "LEAST_CONN", "RANDOM", "PASSTHROUGH", "ROUND_ROBIN", "LEAST_REQUEST"), consistentHash: hashed }),
  some({ localityLbSetting: locality }),
);
const warmed = joined(
  whole({ simple: pick("ROUND_ROBIN", "LEAST_REQUEST") }),
  oneField({
    warmup: joined(whole({ duration: pick("1s", "10m") }), some({ minimumPercent: pick(1, 10, 100), aggression: pick(1, 1.5) })),
    warmupDurationSecs: pick("30s"),
  }),
);

const outlierDetection = joined(
  pick<JsonObject>(
    {},
    { splitExternalLocalOriginErrors: true },
    { splitExternalLocalOriginErrors: true, consecutiveLocalOriginFailures: 10 },
  ),
  some({
    consecutive5xxErrors: pick(0, 1, 5),
    consecutiveGatewayErrors: pick(0, 3),
    interval: duration,
    baseEjectionTime: duration,
    maxEjectionPercent: pick(0, 1, 100),
    minHealthPercent: pick(0, 50, 100),
  }),
);

const files = { clientCertificate: "/etc/certs/c.pem", privateKey: "/etc/certs/k.pem" };
const tls = fc.oneof(
  pick<JsonObject>(
    { mode: "DISABLE" },
    { mode: "ISTIO_MUTUAL" },
    { mode: "ISTIO_MUTUAL", sni: "other.test" },
    { mode: "SIMPLE", insecureSkipVerify: true },
  ),
  joined(
    pick<JsonObject>(
      { mode: "SIMPLE" },
      { mode: "SIMPLE", caCertificates: "/etc/certs/ca.pem" },
      { mode: "SIMPLE", caCertificates: "system" },
      { mode: "SIMPLE", credentialName: "cert" },
      { mode: "MUTUAL", credentialName: "cert" },
      { mode: "MUTUAL", ...files },
      { mode: "MUTUAL", ...files, caCertificates: "/etc/certs/ca.pem", caCrl: "/etc/certs/crl.pem" },
    ),
    some({ sni: pick("sni.test", "*.sni.test"), subjectAltNames: texts(["spiffe://td/ns/a/sa/x", "san.test"]) }),
  ),
);

const settings = {
  connectionPool,
  loadBalancer: fc.oneof({ arbitrary: loadBalancer, weight: 4 }, { arbitrary: warmed, weight: 1 }),
  outlierDetection,
  tls,
};

const portLevelSettings = fc.uniqueArray(joined(whole({ port: whole({ number: port }) }), someOf(settings)), {
  ...{ minLength: 1, maxLength: 2 },
  selector: (one) => JSON.stringify(one.port),
});

const wrapped = oneField({
  tunnel: pick<JsonObject>(
    { protocol: "CONNECT", targetHost: "far.test", targetPort: 443 },
    { protocol: "POST", targetHost: "10.0.0.1", targetPort: 1 },
  ),
  proxyProtocol: whole({ version: pick("V1", "V2") }),
});
const trafficPolicy = joined(
  fc.oneof({ arbitrary: pick<JsonObject>({}), weight: 3 }, wrapped),
  some({
    ...settings,
    portLevelSettings,
    retryBudget: some({ percent: pick(0, 20, 100), minRetryConcurrency: pick(1, 3) }),
  }),
);

const subsets = texts(SUBSETS, 0).chain((names) =>
  fc.tuple(
    ...names.map((name) =>
      joined(whole({ name: pick(name) }), some({ labels: pick<JsonObject>({ version: name }, {}), trafficPolicy: some(settings) })),
    ),
  ),
);

/** A DestinationRule that says something of everything one can say. */
export const destinationRule: fc.Arbitrary<Make> = joined(
  whole({ host: pick(...HOSTS), subsets }),
  some({ trafficPolicy }),
  fc.oneof(whole({ workloadSelector: selector }), whole({ exportTo: list(pick(".", "*"), [1, 1]) })),
).map((spec) => docOf("DestinationRule", spec));
