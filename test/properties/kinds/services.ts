import type { JsonObject } from "@bufbuild/protobuf";
import fc from "fast-check";
import type { Doc, Make } from "../doc.ts";
import { docOf, EXACT_HOSTS, joined, list, NAMESPACE, pick, some, texts, whole } from "./values.ts";

const PORTS: readonly JsonObject[] = [
  { number: 80, name: "http", protocol: "HTTP" },
  { number: 81, name: "grpc-web", protocol: "GRPC-WEB" },
  { number: 82, name: "h2", protocol: "HTTP2", targetPort: 8082 },
  { number: 443, name: "tls", protocol: "TLS" },
  { number: 444, name: "https", protocol: "HTTPS" },
  { number: 5000, name: "tcp", protocol: "TCP" },
  { number: 6379, name: "redis", protocol: "REDIS" },
  { number: 27017, name: "mongo", protocol: "MONGO" },
  { number: 3306, name: "mysql", protocol: "MySQL" },
  { number: 7000, name: "any" },
];
const ports = fc.subarray([...PORTS], { minLength: 1, maxLength: 4 });

/** Ports that several hosts may share, since the first bytes tell them apart. */
const namedPorts = fc.subarray(PORTS.slice(0, 5), { minLength: 1 });

const endpoint = (address: fc.Arbitrary<string>): fc.Arbitrary<JsonObject> =>
  joined(
    whole({ address }),
    some({
      labels: pick<JsonObject>({ version: "v1" }, { version: "v2", app: "web" }, { "security.istio.io/tlsMode": "istio" }),
      locality: pick("r1/z1/s1", "r1/z2", "r2"),
      weight: pick(0, 1, 4_294_967),
      network: pick("", "net-1"),
      serviceAccount: pick("account"),
    }),
  );
const four = pick("10.1.2.3", "10.1.2.4", "10.1.9.9", "127.0.0.1");
const six = pick("2001:db8::3", "::1", "2001:DB8:0:0::4");
const names = pick("dns-0.test", "dns-1.test");

/** Endpoints by how they are found: addresses, names, sockets or none. */
const STYLES: readonly fc.Arbitrary<JsonObject>[] = [
  whole({ resolution: pick("STATIC"), endpoints: list(endpoint(fc.oneof(four, six)), [1, 4]) }),
  whole({ resolution: pick("STATIC"), endpoints: list(endpoint(pick("unix:///run/app.sock")), [1, 1]) }).map((one) => ({
    ...one,
    ports: [{ number: 80, name: "http", protocol: "HTTP" }],
  })),
  whole({ resolution: pick("STATIC"), workloadSelector: pick<JsonObject>({ labels: { app: "web" } }) }),
  whole({ resolution: pick("DNS"), endpoints: list(endpoint(fc.oneof(names, four)), [1, 3]) }),
  whole({ resolution: pick("DNS", "DNS_ROUND_ROBIN") }),
  whole({ resolution: pick("DNS_ROUND_ROBIN"), endpoints: list(endpoint(names), [1, 1]) }),
  whole({ resolution: pick("NONE") }),
  whole({ resolution: pick("NONE"), addresses: pick(["10.1.201.0/24", "10.1.200.0/31"]) }),
];
const shared = some({
  addresses: texts(["10.1.200.1", "2001:db8:200::1"]),
  subjectAltNames: texts(["spiffe://td/ns/a/sa/x", "san.test"]),
  exportTo: list(pick(".", "*"), [1, 1]),
});
const exact = joined(
  fc.oneof(whole({ hosts: pick(...EXACT_HOSTS).map((one) => [one]), ports }), whole({ hosts: texts(EXACT_HOSTS), ports: namedPorts })),
  whole({ location: pick("MESH_INTERNAL", "MESH_EXTERNAL") }),
  shared,
  fc.oneof(...STYLES),
);
const partial = joined(
  whole({ hosts: pick(["*.wild.test"]), ports, location: pick("MESH_INTERNAL", "MESH_EXTERNAL") }),
  shared,
  whole({ resolution: pick("NONE") }),
);
const dynamic = whole({
  hosts: pick(["*.dyn.test"]),
  ports: pick<JsonObject[]>([{ number: 80, name: "http", protocol: "HTTP" }], [{ number: 443, name: "tls", protocol: "TLS" }]),
  location: pick("MESH_EXTERNAL"),
  resolution: pick("DYNAMIC_DNS"),
});

/** A ServiceEntry of any kind: addresses of both families, sockets, names, none, selected workloads. */
export const serviceEntry: fc.Arbitrary<Make> = fc
  .oneof({ arbitrary: exact, weight: 6 }, { arbitrary: partial, weight: 1 }, { arbitrary: dynamic, weight: 1 })
  .map((spec) => docOf("ServiceEntry", spec));

/** A machine that services may select, one of them with the addresses of a proxy. */
export const workloadEntry: fc.Arbitrary<Make> = joined(
  whole({ address: fc.oneof(four, six), labels: pick<JsonObject>({ app: "web", version: "v1" }, { app: "plain" }) }),
  some({ ports: pick<JsonObject>({ http: 8080, tcp: 5001 }), locality: pick("r1/z1"), weight: pick(1, 5), network: pick("net-1") }),
).map((spec) => docOf("WorkloadEntry", spec));

/** A Kubernetes Service: with an address, without one, or a name for another. */
export const kubernetesService: fc.Arbitrary<Make> = fc
  .record({
    address: pick("10.1.202.1", "2001:db8:202::1", "None"),
    ready: fc.boolean(),
    external: fc.boolean(),
    affinity: pick("None", "ClientIP"),
  })
  .map(({ address, ready, external, affinity }) => (index): readonly Doc[] => {
    const name = index === 0 ? "kube" : `kube-${index}`;
    const ports = [
      { name: "http", port: 80 },
      { name: "tcp-odd", port: 5000, targetPort: 5001 },
    ];
    const metadata = { namespace: NAMESPACE, creationTimestamp: "2026-01-01T00:00:00Z" };
    const spec = external
      ? { type: "ExternalName", externalName: "far.test", ports }
      : { clusterIP: address, sessionAffinity: affinity, ports };
    return [
      { apiVersion: "v1", kind: "Service", metadata: { ...metadata, name }, spec },
      {
        apiVersion: "discovery.k8s.io/v1",
        kind: "EndpointSlice",
        metadata: { ...metadata, name: `${name}-1`, labels: { "kubernetes.io/service-name": name } },
        addressType: "IPv4",
        ports: [
          { name: "http", port: 80, protocol: "TCP" },
          { name: "tcp-odd", port: 5001, protocol: "TCP" },
        ],
        endpoints: [
          { addresses: ["10.1.9.9"], conditions: { ready } },
          { addresses: ["10.1.9.10"], conditions: { ready: true } },
        ],
      },
    ];
  });
