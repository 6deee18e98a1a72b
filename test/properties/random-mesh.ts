import type { JsonObject } from "@bufbuild/protobuf";
import fc from "fast-check";
import { allMade, type Doc, type Make, several } from "./doc.ts";

/** Who writes the objects. Names, subsets, rules and addresses all carry the writer's mark, so that a trace of them can be found in bytes. */
export interface Writer {
  readonly namespace: string;
  readonly mark: string;
  /** First two numbers of all addresses. */
  readonly net: string;
  /** When its objects were made, in turn. */
  readonly created: readonly string[];
  /** What objects may say of their visibility; undefined leaves it out. */
  readonly exportTo: readonly (readonly string[] | undefined)[];
  /** Hosts that objects may speak for. */
  readonly hosts: readonly string[];
  /** Hosts that services may declare. */
  readonly declares: readonly string[];
  /** `namespace/name` of delegates that rules may name. */
  readonly delegates: readonly string[];
}

/** A random configuration by one writer: of every kind that decides what clients are offered. */
export const randomDocs = (writer: Writer): fc.Arbitrary<readonly Doc[]> =>
  fc
    .tuple(
      several(serviceEntry(writer), 3),
      several(virtualService(writer), 2),
      several(delegate(writer), 1),
      several(destinationRule(writer), 2),
      several(sidecar(writer), 1),
      several(workloadEntry(writer), 1),
      several(kubernetesService(writer), 1),
      several(requestAuthentication(writer), 1),
      several(authorizationPolicy(writer), 1),
      several(trafficExtension(writer), 1),
      several(proxyConfig(writer), 1),
      several(kubernetesRoute(writer), 2),
    )
    .map(allMade);

const NETWORKING = "networking.istio.io/v1";
const PORTS = [
  { number: 80, name: "http", protocol: "HTTP" },
  { number: 81, name: "grpc", protocol: "GRPC" },
  { number: 443, name: "tls", protocol: "TLS" },
  { number: 5000, name: "tcp", protocol: "TCP" },
  { number: 7000, name: "any" },
] as const;

const object = (writer: Writer, [kind, name, index]: readonly [string, string, number], spec: JsonObject): Doc => ({
  apiVersion: NETWORKING,
  kind,
  metadata: {
    name: `${writer.mark}-${name}-${index}`,
    namespace: writer.namespace,
    creationTimestamp: writer.created[index % writer.created.length] ?? "",
  },
  spec,
});

const visible = (exportTo: readonly string[] | undefined): JsonObject => (exportTo === undefined ? {} : { exportTo: [...exportTo] });

function serviceEntry(writer: Writer): fc.Arbitrary<Make> {
  return fc
    .record({
      hosts: fc.subarray([...writer.declares], { minLength: 1, maxLength: 2 }),
      ports: fc.subarray([...PORTS], { minLength: 1 }),
      resolution: fc.constantFrom("STATIC", "STATIC", "DNS", "NONE"),
      location: fc.constantFrom("MESH_INTERNAL", "MESH_EXTERNAL"),
      exportTo: fc.constantFrom(...writer.exportTo),
      hasAddress: fc.boolean(),
      endpoints: fc.integer({ min: 1, max: 3 }),
      selects: fc.boolean(),
    })
    .map(({ hosts, ports, resolution: wanted, location, exportTo, hasAddress, endpoints, selects }) => (index) => {
      const resolution = hosts.some((host) => host.startsWith("*")) ? "NONE" : wanted;
      const workloads = endpointsOf(writer, { resolution, index, count: endpoints });
      return object(writer, ["ServiceEntry", "entry", index], {
        hosts,
        ports: ports.map((port) => ({ ...port })),
        resolution,
        location,
        ...visible(exportTo),
        ...(hasAddress && { addresses: [`${writer.net}.200.${index + 1}`] }),
        ...(selects && resolution === "STATIC" && writer.exportTo.length === 1
          ? { workloadSelector: { labels: { app: "web" } } }
          : workloads),
      });
    });
}

function endpointsOf(
  writer: Writer,
  { resolution, index, count }: { readonly resolution: string; readonly index: number; readonly count: number },
): JsonObject {
  if (resolution === "NONE") return {};
  const address = (number: number): string =>
    resolution === "DNS" ? `${writer.mark}-${index}-${number}.dns.test` : `${writer.net}.${index + 1}.${number + 1}`;
  return {
    endpoints: Array.from({ length: count }, (_, number) => ({
      address: address(number),
      labels: { version: number === 0 ? "v1" : "v2" },
    })),
  };
}

function virtualService(writer: Writer): fc.Arbitrary<Make> {
  return fc
    .record({
      hosts: fc.subarray([...writer.hosts], { minLength: 1, maxLength: 1 }),
      gateways: fc.constantFrom<readonly string[]>([], ["mesh", "a/edge"], ["a/edge"]),
      target: fc.constantFrom(...writer.hosts.filter((host) => !host.startsWith("*"))),
      hasSubset: fc.boolean(),
      exportTo: fc.constantFrom(...writer.exportTo),
      delegate: fc.option(fc.constantFrom(...writer.delegates), { freq: 3 }),
    })
    .map(({ hosts, gateways, target, hasSubset, exportTo, delegate: to }) => (index) => {
      const destination = { host: target, ...(hasSubset && { subset: `${writer.mark}-v1` }) };
      const [namespace = "", name = ""] = to?.split("/") ?? [];
      return object(writer, ["VirtualService", "rules", index], {
        hosts,
        ...(gateways.length > 0 && { gateways: [...gateways] }),
        ...visible(exportTo),
        http: [
          ...(to === null ? [] : [{ match: [{ uri: { prefix: "/" } }], delegate: { namespace, name } }]),
          { name: `${writer.mark}-rule-${index}`, match: [{ uri: { prefix: `/${writer.mark}` } }], route: [{ destination }] },
          { route: [{ destination: { host: target } }] },
        ],
        tcp: [{ match: [{ port: 5000 }], route: [{ destination }] }],
      });
    });
}

function delegate(writer: Writer): fc.Arbitrary<Make> {
  return fc.record({ exportTo: fc.constantFrom(...writer.exportTo), target: fc.constantFrom(...writer.hosts) }).map(
    ({ exportTo, target }) =>
      (index) =>
        object(writer, ["VirtualService", "delegate", index], {
          ...visible(exportTo),
          http: [
            {
              name: `${writer.mark}-delegated`,
              match: [{ uri: { prefix: `/${writer.mark}-delegated` } }],
              route: [{ destination: { host: target.replace("*", "one") } }],
            },
          ],
        }),
  );
}

function destinationRule(writer: Writer): fc.Arbitrary<Make> {
  return fc
    .record({
      host: fc.constantFrom(...writer.hosts),
      exportTo: fc.constantFrom(...writer.exportTo),
      simple: fc.constantFrom("ROUND_ROBIN", "RANDOM", "LEAST_REQUEST"),
      hashed: fc.boolean(),
      selects: fc.boolean(),
    })
    .map(
      ({ host, exportTo, simple, hashed, selects }) =>
        (index) =>
          object(writer, ["DestinationRule", "policy", index], {
            host,
            ...visible(exportTo),
            ...(selects && { workloadSelector: { matchLabels: { app: "web" } } }),
            trafficPolicy: {
              connectionPool: { tcp: { maxConnections: 100 + index } },
              loadBalancer: hashed ? { consistentHash: { httpHeaderName: `x-${writer.mark}` } } : { simple },
            },
            subsets: [{ name: `${writer.mark}-v1`, labels: { version: "v1" } }],
          }),
    );
}

function sidecar(writer: Writer): fc.Arbitrary<Make> {
  const imports = ["*/*", "./*", "b/*", "b/h0.test", "*/h1.test", "~/*", "a/*"];
  return fc.record({ hosts: fc.subarray(imports, { minLength: 1, maxLength: 3 }), selects: fc.boolean(), closed: fc.boolean() }).map(
    ({ hosts, selects, closed }) =>
      (index) =>
        object(writer, ["Sidecar", "scope", index], {
          ...(selects && { workloadSelector: { labels: { app: "web" } } }),
          egress: [{ hosts }],
          ...(closed && { outboundTrafficPolicy: { mode: "REGISTRY_ONLY" } }),
        }),
  );
}

function workloadEntry(writer: Writer): fc.Arbitrary<Make> {
  return fc.constant((index) =>
    object(writer, ["WorkloadEntry", "machine", index], {
      address: `${writer.net}.100.${index + 1}`,
      labels: { app: "web", version: "v1" },
      serviceAccount: `${writer.mark}-account`,
    }),
  );
}

function kubernetesService(writer: Writer): fc.Arbitrary<Make> {
  return fc.constantFrom(...writer.exportTo).map((exportTo) => (index) => {
    const name = `${writer.mark}-service-${index}`;
    const metadata = { namespace: writer.namespace };
    const annotations = exportTo === undefined ? {} : { annotations: { "networking.istio.io/exportTo": exportTo.join(",") } };
    return [
      {
        apiVersion: "v1",
        kind: "Service",
        metadata: { ...metadata, name, ...annotations },
        spec: { clusterIP: `${writer.net}.201.${index + 1}`, ports: [{ name: "http", port: 80 }] },
      },
      {
        apiVersion: "discovery.k8s.io/v1",
        kind: "EndpointSlice",
        metadata: { ...metadata, name: `${name}-1`, labels: { "kubernetes.io/service-name": name } },
        addressType: "IPv4",
        ports: [{ name: "http", port: 80, protocol: "TCP" }],
        endpoints: [{ addresses: [`${writer.net}.202.${index + 1}`], conditions: { ready: true } }],
      },
    ];
  });
}

/** Keys may be fetched from a service, if there is one by that name. */
function requestAuthentication(writer: Writer): fc.Arbitrary<Make> {
  return fc.constantFrom(...writer.hosts).map((host) => (index) => ({
    ...object(writer, ["RequestAuthentication", "tokens", index], {
      jwtRules: [{ issuer: `${writer.mark}.test`, jwksUri: `http://${host.replace("*", "one")}:80/keys` }],
    }),
    apiVersion: "security.istio.io/v1",
  }));
}

function authorizationPolicy(writer: Writer): fc.Arbitrary<Make> {
  return fc.constantFrom("ALLOW", "DENY").map((action) => (index) => ({
    ...object(writer, ["AuthorizationPolicy", "policy", index], {
      action,
      rules: [{ to: [{ operation: { paths: [`/${writer.mark}`] } }] }],
    }),
    apiVersion: "security.istio.io/v1",
  }));
}

/** Both ways of saying what a filter is, and the older kind. */
function trafficExtension(writer: Writer): fc.Arbitrary<Make> {
  const module = { url: `oci://${writer.mark}.images.test/x:v1`, pluginName: `${writer.mark}-module` };
  const code = { inlineCode: `function envoy_on_request(handle) handle:logInfo("${writer.mark}") end` };
  const bodies: readonly (readonly [kind: string, spec: JsonObject])[] = [
    ["TrafficExtension", { lua: code }],
    ["TrafficExtension", { wasm: module, priority: 1 }],
    ["WasmPlugin", { ...module, phase: "AUTHN" }],
  ];
  return fc.tuple(fc.constantFrom(...bodies), fc.boolean()).map(([[kind, spec], selects]) => (index) => ({
    ...object(writer, [kind, "extension", index], { ...(selects && { selector: { matchLabels: { app: "web" } } }), ...spec }),
    apiVersion: "extensions.istio.io/v1alpha1",
  }));
}

function proxyConfig(writer: Writer): fc.Arbitrary<Make> {
  return fc.constantFrom(0, 1, 64).map((concurrency) => (index) => ({
    ...object(writer, ["ProxyConfig", "process", index], { concurrency, environmentVariables: { ISTIO_META_MARK: writer.mark } }),
    apiVersion: "networking.istio.io/v1beta1",
  }));
}

/** What Kubernetes has for the same purpose, with grants to everybody. */
function kubernetesRoute(writer: Writer): fc.Arbitrary<Make> {
  const all = (hosts: readonly string[]): readonly (readonly [group: string, kind: string, spec: JsonObject])[] => {
    const parentRefs = [{ name: "edge", namespace: "a" }];
    const backendRefs = [{ name: `${writer.mark}-service-0`, port: 80 }];
    const http = {
      paths: [
        { path: `/${writer.mark}`, pathType: "Prefix", backend: { service: { name: `${writer.mark}-service-0`, port: { number: 80 } } } },
      ],
    };
    return [
      [
        "gateway.networking.k8s.io",
        "Gateway",
        { gatewayClassName: "istio", listeners: [{ name: writer.mark, port: 80, protocol: "HTTP" }] },
      ],
      ["gateway.networking.k8s.io", "HTTPRoute", { parentRefs, hostnames: [...hosts], rules: [{ backendRefs }] }],
      ["gateway.networking.k8s.io", "TCPRoute", { parentRefs, rules: [{ backendRefs }] }],
      [
        "gateway.networking.k8s.io",
        "ReferenceGrant",
        { from: [{ group: "", kind: "Gateway", namespace: "a" }], to: [{ group: "", kind: "Secret" }] },
      ],
      ["networking.k8s.io", "Ingress", { ingressClassName: "istio", rules: hosts.map((host) => ({ host, http })) }],
    ];
  };
  return fc.constantFrom(...all(writer.hosts)).map(([group, kind, spec]) => (index) => ({
    ...object(writer, [kind, "route", index], spec),
    apiVersion: `${group}/v1`,
  }));
}
