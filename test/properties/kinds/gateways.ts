import type { JsonObject } from "@bufbuild/protobuf";
import fc from "fast-check";
import type { Make } from "../doc.ts";
import { docOf, joined, oneField, pick, some, someOf, texts, whole } from "./values.ts";

const parameters = some({
  minProtocolVersion: pick("TLS_AUTO", "TLSV1_2", "TLSV1_3"),
  maxProtocolVersion: pick("TLS_AUTO", "TLSV1_3"),
  cipherSuites: texts(["ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-RSA-AES256-GCM-SHA384"]),
});
const files = { serverCertificate: "/etc/certs/s.pem", privateKey: "/etc/certs/k.pem" };
const terminated = fc.oneof(
  joined(
    pick<JsonObject>(
      { mode: "SIMPLE", credentialName: "cert" },
      { mode: "SIMPLE", credentialNames: ["cert", "other"] },
      { mode: "SIMPLE", ...files },
      { mode: "MUTUAL", credentialName: "cert", subjectAltNames: ["client.test"] },
      { mode: "MUTUAL", ...files, caCertificates: "/etc/certs/ca.pem" },
      { mode: "OPTIONAL_MUTUAL", credentialName: "cert" },
      { mode: "ISTIO_MUTUAL" },
    ),
    parameters,
  ),
);
const passed = pick<JsonObject>({ mode: "PASSTHROUGH" }, { mode: "AUTO_PASSTHROUGH" });
const HOSTS = ["h0.test", "*.wild.test", "a/h1.test", "./kube.a.svc.cluster.local", "*/six.test"];
const hosts = fc.oneof(pick(["*"]), texts(HOSTS));

const port = (number: number, protocol: string): JsonObject => ({
  number,
  protocol,
  name: `${protocol.toLowerCase().replace("_", "-")}-${number}`,
});
const bound = some({ bind: pick("10.1.9.8", "0.0.0.0"), name: pick("named") });
const plain = whole({
  port: pick(port(80, "HTTP"), port(8080, "HTTP2"), port(81, "GRPC"), port(5000, "TCP"), port(27017, "MONGO")),
  hosts,
});
const redirecting = whole({ port: pick(port(80, "HTTP")), hosts, tls: pick<JsonObject>({ httpsRedirect: true }) });
const secure = fc.oneof(
  whole({ port: pick(port(443, "HTTPS"), port(8443, "HTTPS")), hosts, tls: terminated }),
  whole({ port: pick(port(443, "TLS"), port(9443, "TLS")), hosts, tls: fc.oneof(terminated, passed) }),
  whole({ port: pick(port(443, "HTTPS")), hosts, tls: pick<JsonObject>({ mode: "PASSTHROUGH" }) }),
);
const server = joined(fc.oneof(plain, redirecting, secure), fc.oneof({ arbitrary: pick<JsonObject>({}), weight: 4 }, bound));

/** A Gateway whose servers may be at odds with each other, and with those of other Gateways. */
export const gateway: fc.Arbitrary<Make> = whole({
  selector: pick<JsonObject>({ app: "edge" }),
  servers: fc.uniqueArray(server, { minLength: 1, maxLength: 5, selector: (one) => JSON.stringify(one.port) }),
}).map((spec) => docOf("Gateway", spec));

const ingressPort = pick(port(80, "HTTP"), port(9000, "TCP"), port(9001, "GRPC"), port(8000, "HTTP"));
const ingress = joined(
  whole({ port: ingressPort, defaultEndpoint: pick("127.0.0.1:8080", "0.0.0.0:9", "unix:///run/app.sock") }),
  some({ bind: pick("10.1.9.9", "0.0.0.0"), captureMode: pick("DEFAULT", "IPTABLES") }),
);
const imports = texts(["*/*", "./*", "a/*", "a/h0.test", "*/h1.test", "~/*", "*/*.wild.test"]);
const egress = joined(
  whole({ hosts: imports }),
  fc.oneof(
    pick<JsonObject>({}),
    joined(
      whole({ port: pick(port(80, "HTTP"), port(5000, "TCP"), port(15080, "HTTP_PROXY"), port(7000, "HTTP")) }),
      some({ bind: pick("127.0.0.1", "10.1.9.7"), captureMode: pick("DEFAULT", "NONE", "IPTABLES") }),
    ),
  ),
);

const unique = (one: fc.Arbitrary<JsonObject>, maxLength: number): fc.Arbitrary<JsonObject[]> =>
  fc.uniqueArray(one, { minLength: 1, maxLength, selector: (listener) => JSON.stringify(listener.port ?? null) });

/** A Sidecar, for all of its namespace or some workloads. The listener without a port stands last, as it must. */
export const sidecar: fc.Arbitrary<Make> = joined(
  some({ workloadSelector: pick<JsonObject>({ labels: { app: "web" } }) }),
  someOf({
    ingress: unique(ingress, 3),
    egress: unique(egress, 3).map((all) => [
      ...all.filter(({ port: own }) => own !== undefined),
      ...all.filter(({ port: own }) => own === undefined),
    ]),
    outboundTrafficPolicy: oneField({ mode: pick("REGISTRY_ONLY", "ALLOW_ANY") }),
    inboundConnectionPool: pick<JsonObject>({ http: { http1MaxPendingRequests: 1, idleTimeout: "1s" } }, { tcp: { maxConnections: 5 } }),
  }),
).map((spec) => docOf("Sidecar", spec));
