import { describe, expect, it } from "vitest";
import { formatPath } from "../problem.ts";
import { readObject } from "../read-object.ts";

/** A spec that is right, or what is said about it: `level path` each. Each decides as Istio's webhook does, where `docs/from-istio.md` says nothing else. */
type Row = readonly [about: string, spec: object, said?: readonly string[]];

const server = (more: object): object => ({
  servers: [{ port: { number: 443, name: "https", protocol: "HTTPS" }, hosts: ["a.example"], ...more }],
});
const http = { number: 80, name: "http", protocol: "HTTP" };
const pool = (tcp: object): object => ({ host: "a", trafficPolicy: { connectionPool: { tcp } } });
const roots = (credentialName: string): object => ({ host: "a", trafficPolicy: { tls: { mode: "SIMPLE", credentialName } } });
const to = (host: string): object => ({ destination: { host } });
const patch = (applyTo: string, match: object): object => ({ configPatches: [{ applyTo, match, patch: { operation: "REMOVE" } }] });
const inner = {
  listener: { filterChain: { filter: { name: "envoy.filters.network.http_connection_manager", subFilter: { name: "x" } } } },
};
const wild = (...hosts: readonly string[]): object => ({ hosts, resolution: "DYNAMIC_DNS", ports: [http] });

const TABLE: Readonly<Record<string, readonly Row[]>> = {
  "networking.istio.io/v1 Gateway": [
    [
      "names one source of certificates where it passes TLS through, too",
      server({ tls: { mode: "PASSTHROUGH", credentialName: "a", tlsCertificates: [{ serverCertificate: "/a" }] } }),
      ["warning spec.servers[0].tls", "error spec.servers[0].tls"],
    ],
    [
      "has no revocation list beside a credential it does not use",
      server({ tls: { mode: "AUTO_PASSTHROUGH", credentialName: "a", caCrl: "/crl" } }),
      ["warning spec.servers[0].tls", "error spec.servers[0].tls.caCrl"],
    ],
    ["may have files it does not use", server({ tls: { mode: "PASSTHROUGH", caCrl: "/crl" } }), ["warning spec.servers[0].tls"]],
    [
      "takes no files where it speaks plain text",
      server({ port: http, tls: { httpsRedirect: true, privateKey: "/k" } }),
      ["warning spec.servers[0].tls", "error spec.servers[0].tls"],
    ],
    [
      "may have a revocation list it does not use beside the certificates of the mesh",
      server({ tls: { mode: "ISTIO_MUTUAL", caCrl: "/crl", credentialName: "a" } }),
      ["warning spec.servers[0].tls.caCrl", "error spec.servers[0].tls.credentialName"],
    ],
    ["redirects plain text", server({ port: http, tls: { httpsRedirect: true } })],
    [
      "needs cipher suites for old TLS",
      server({ tls: { mode: "SIMPLE", credentialName: "a", minProtocolVersion: "TLSV1_1" } }),
      ["warning spec.servers[0].tls.minProtocolVersion"],
    ],
    [
      "speaks old TLS with them",
      server({ tls: { mode: "SIMPLE", credentialName: "a", minProtocolVersion: "TLSV1_0", cipherSuites: ["AES128-SHA"] } }),
    ],
    [
      "has no targetPort",
      { servers: [{ port: { ...http, targetPort: 8080 }, hosts: ["a.example"] }] },
      ["error spec.servers[0].port.targetPort"],
    ],
  ],
  "networking.istio.io/v1 Sidecar": [
    ["has no targetPort for what it takes", { ingress: [{ port: { ...http, targetPort: 1 } }] }, ["error spec.ingress[0].port.targetPort"]],
    [
      "has no targetPort for what it imports",
      { egress: [{ port: { ...http, targetPort: 1 }, hosts: ["./*"] }] },
      ["error spec.egress[0].port.targetPort"],
    ],
  ],
  "networking.istio.io/v1 DestinationRule": [
    ["has roots in a ConfigMap of its namespace", roots("configmap://shop/ca")],
    ["has them in no other", roots("configmap://other/ca"), ["error spec.trafficPolicy.tls.credentialName"]],
    ["has them in one with a namespace", roots("configmap://ca"), ["error spec.trafficPolicy.tls.credentialName"]],
    [
      "has none of others in parts of it",
      {
        host: "a",
        subsets: [
          { name: "b", trafficPolicy: { portLevelSettings: [{ port: { number: 1 }, tls: { credentialName: "configmap://x/" } }] } },
        ],
      },
      ["error spec.subsets[0].trafficPolicy.portLevelSettings[0].tls.credentialName"],
    ],
    ["counts idle time in milliseconds", pool({ idleTimeout: "1.0000001s" }), ["error spec.trafficPolicy.connectionPool.tcp.idleTimeout"]],
    ["does not count it backwards", pool({ idleTimeout: "-0.5ms" }), ["error spec.trafficPolicy.connectionPool.tcp.idleTimeout"]],
    ["switches it off", pool({ idleTimeout: "0s" })],
    ["switches it off with less than a millisecond", pool({ idleTimeout: "0.5ms" })],
    [
      "ejects by statuses",
      { host: "a", trafficPolicy: { outlierDetection: { outlierDetectionHttpErrorCodes: [99, 100, 599, 600] } } },
      [0, 3].map((at) => `error spec.trafficPolicy.outlierDetection.outlierDetectionHttpErrorCodes[${at}]`),
    ],
  ],
  "networking.istio.io/v1 WorkloadGroup": [["may be asked by gRPC how it is", { template: {}, probe: { grpc: { port: 1 } } }]],
  "networking.istio.io/v1 VirtualService": [
    ["sends something to somebody", { hosts: ["a"], tcp: [{ route: [to("b"), to("c")] }] }, ["error spec.tcp[0].route"]],
    ["may send nothing to some", { hosts: ["a"], tcp: [{ route: [to("b"), { ...to("c"), weight: 1 }] }] }],
  ],
  "networking.istio.io/v1 ServiceEntry": [
    ["has wildcards only, to be looked up as requests come", wild("*.a.example", "b.example"), ["error spec.hosts[1]"]],
    ["has several of them", wild("*.a.example", "*.b.example")],
  ],
  "networking.istio.io/v1alpha3 EnvoyFilter": [
    ["finds HTTP filters for HTTP filters", patch("HTTP_FILTER", inner)],
    [
      "finds HTTP filters for nothing else",
      patch("NETWORK_FILTER", inner),
      ["error spec.configPatches[0].match.listener.filterChain.filter.subFilter"],
    ],
    ["may match what is not looked at", patch("EXTENSION_CONFIG", { listener: {} }), ["warning spec.configPatches[0].match.listener"]],
    ["may match it for a bootstrap", patch("BOOTSTRAP", { cluster: {} }), ["warning spec.configPatches[0].match.cluster"]],
    ["may match it for listener filters", patch("LISTENER_FILTER", { cluster: {} }), ["warning spec.configPatches[0].match.cluster"]],
    ["matches clusters for clusters only", patch("CLUSTER", { listener: {} }), ["error spec.configPatches[0].match.listener"]],
  ],
  "extensions.istio.io/v1alpha1 WasmPlugin": [
    ["names a module without a scheme", { url: "a.example/module:tag" }],
    ["names one of a registry with a port", { url: "a.example:5000/module" }],
    ["names no other scheme than it can be fetched by", { url: "unix:module" }, ["error spec.url"]],
    ["has no port that is nothing", { url: "unix:" }, ["error spec.url"]],
    ["has ports that are numbers", { url: "127.0.0.1:http" }, ["error spec.url"]],
    ["has no brackets in a host", { url: "a[b]" }, ["error spec.url"]],
    ["has no control characters", { url: "a\u0001b" }, ["error spec.url"]],
  ],
};

for (const [type, rows] of Object.entries(TABLE)) {
  const [apiVersion, kind] = type.split(" ");
  describe(`a ${kind}`, () => {
    for (const [about, spec, said = []] of rows)
      it(about, () => {
        const content = { apiVersion, kind, metadata: { name: "one", namespace: "shop" }, spec };
        const { problems } = readObject({ origin: { source: "test" }, slot: "test", content });
        expect(problems.map(({ level, path }) => `${level} ${formatPath(path)}`)).toEqual(said);
      });
  });
}
