import assert from "node:assert/strict";
import { describe, it } from "vitest";
import type { Endpoint } from "../model/endpoint.ts";
import { registryFixture } from "./registry-fixture.ts";

const at = (endpoint: Endpoint): string => `${endpoint.address}:${endpoint.port}`;
const api = { namespace: "shop", host: "api.test" };

describe("services of ServiceEntries", () => {
  it("declares one service per host, with every field in its place", () => {
    const { registry } = registryFixture(`
kind: ServiceEntry
metadata: {name: api, namespace: shop, labels: {team: web}, creationTimestamp: "2026-01-01T00:00:00Z"}
spec:
  hosts: [api.test, "*.api.test"]
  addresses: [10.0.0.1/32, 10.1.2.3/16, "2001:DB8::1"]
  ports:
  - {number: 80, name: http, protocol: HTTP, targetPort: 8080}
  - {number: 443, name: tls, protocol: tls}
  - {number: 53, name: dns, protocol: UDP}
  - {number: 9000, name: http-unsaid}
  location: MESH_INTERNAL
  resolution: STATIC
  exportTo: [".", bank]
  subjectAltNames: [spiffe://td/ns/shop/sa/api]
`);
    assert.deepEqual(registry.namespaces(), ["shop"]);
    assert.deepEqual(registry.servicesIn("shop"), [{ namespace: "shop", host: "*.api.test" }, api]);
    assert.deepEqual(registry.service(api), {
      namespace: "shop",
      host: "api.test",
      name: "api",
      source: "External",
      objectKey: "ServiceEntry/shop/api",
      ports: [
        { name: "http", number: 80, protocol: "HTTP" },
        { name: "tls", number: 443, protocol: "TLS" },
        { name: "http-unsaid", number: 9000, protocol: "Auto" },
      ],
      addresses: ["10.0.0.1", "10.1.0.0/16", "2001:db8::1"],
      autoAddresses: [],
      resolution: "static",
      headless: false,
      meshExternal: false,
      exportTo: [".", "bank"],
      labels: { team: "web" },
      selector: undefined,
      subjectAltNames: ["spiffe://td/ns/shop/sa/api"],
      externalName: undefined,
      nodeLocal: false,
      trafficDistribution: "any",
      publishNotReadyAddresses: false,
      raceConnects: false,
      declaredAccounts: [],
      createdAt: Date.UTC(2026, 0, 1),
    });
    assert.equal(registry.service({ namespace: "bank", host: "api.test" }), undefined);
  });

  const resolutions = [
    ["NONE", "none"],
    ["STATIC", "static"],
    ["DNS", "dns"],
    ["DNS_ROUND_ROBIN", "dnsRoundRobin"],
    ["DYNAMIC_DNS", "dynamicDns"],
  ] as const;
  for (const [written, want] of resolutions) {
    it(`resolution ${written} is ${want}`, () => {
      const { registry } = registryFixture(
        `{kind: ServiceEntry, metadata: {name: api}, spec: {hosts: [api.test], resolution: ${written}}}`,
      );
      assert.equal(registry.service(api)?.resolution, want);
      assert.equal(registry.service(api)?.meshExternal, true);
    });
  }

  it("exports by the mesh's default where it says nothing", () => {
    const entry = "{kind: ServiceEntry, metadata: {name: api}, spec: {hosts: [api.test]}}";
    assert.deepEqual(registryFixture(entry).registry.service(api)?.exportTo, ["*"]);
    assert.deepEqual(registryFixture(entry, { mesh: { defaultServiceExportTo: ["."] } }).registry.service(api)?.exportTo, ["."]);
  });
});

describe("endpoints of ServiceEntries", () => {
  it("takes ports from the endpoint, then targetPort, then the port itself", () => {
    const { registry } = registryFixture(`
kind: ServiceEntry
metadata: {name: api}
spec:
  hosts: [api.test]
  ports: [{number: 80, name: http, protocol: HTTP, targetPort: 8080}, {number: 90, name: other, protocol: TCP}]
  resolution: STATIC
  endpoints:
  - {address: 10.0.0.1, ports: {http: 7000}}
  - {address: 10.0.0.2}
  - {address: "unix:///run/api.sock"}
`);
    assert.deepEqual(registry.endpoints(api, 80).map(at), ["10.0.0.1:7000", "10.0.0.2:8080", "/run/api.sock:0"]);
    assert.deepEqual(registry.endpoints(api, 90).map(at), ["10.0.0.1:90", "10.0.0.2:90", "/run/api.sock:0"]);
    assert.deepEqual(
      registry.endpoints(api, 80).map(({ unixPath }) => unixPath),
      [false, false, true],
    );
    assert.deepEqual(registry.endpoints(api, 81), []);
  });

  it("fills every field", () => {
    const { registry } = registryFixture(`
kind: ServiceEntry
metadata: {name: api}
spec:
  hosts: [api.test]
  ports: [{number: 80, name: http, protocol: HTTP}]
  resolution: STATIC
  endpoints:
  - {address: 10.0.0.1}
  - address: 10.0.0.2
    labels: {app: api, security.istio.io/tlsMode: istio}
    locality: eu/west/a
    network: net-b
    weight: 3
    serviceAccount: api
`);
    assert.deepEqual(registry.endpoints(api, 80)[1], {
      address: "10.0.0.2",
      unixPath: false,
      port: 80,
      servicePort: "http",
      labels: {
        app: "api",
        "security.istio.io/tlsMode": "istio",
        "topology.kubernetes.io/region": "eu",
        "topology.kubernetes.io/zone": "west",
        "topology.istio.io/subzone": "a",
        "topology.istio.io/cluster": "Kubernetes",
        "topology.istio.io/network": "net-b",
      },
      namespace: "shop",
      workload: "api-1",
      serviceAccount: "api",
      network: "net-b",
      clusterId: "Kubernetes",
      nodeName: "",
      hostname: "",
      subdomain: "",
      locality: { region: "eu", zone: "west", subzone: "a" },
      weight: 3,
      tlsMode: "istio",
      health: "healthy",
      objectKey: "ServiceEntry/shop/api",
    });
    const plain = registry.endpoints(api, 80)[0];
    assert.deepEqual([plain?.weight, plain?.tlsMode, plain?.serviceAccount, plain?.workload], [1, "disabled", "", "api-0"]);
    assert.deepEqual(registry.serviceAccounts(api, 80), ["shop/api"]);
  });

  it("is the host itself for DNS without endpoints, on the target port", () => {
    const { registry } = registryFixture(`
kind: ServiceEntry
metadata: {name: weather}
spec:
  hosts: [api.test, cdn.test]
  ports: [{number: 80, name: http, protocol: HTTP, targetPort: 443}]
  resolution: DNS
`);
    assert.deepEqual(registry.endpoints(api, 80).map(at), ["api.test:443"]);
    assert.deepEqual(registry.endpoints({ namespace: "shop", host: "cdn.test" }, 80).map(at), ["cdn.test:443"]);
    assert.equal(registry.endpoints(api, 80)[0]?.workload, "weather");
  });

  it("has none for NONE and for STATIC without endpoints", () => {
    for (const resolution of ["NONE", "STATIC"]) {
      const { registry } = registryFixture(
        `{kind: ServiceEntry, metadata: {name: api}, spec: {hosts: [api.test], ports: [{number: 80, name: http, protocol: HTTP}], resolution: ${resolution}}}`,
      );
      assert.deepEqual(registry.endpoints(api, 80), []);
    }
  });

  it("finds networks by address range, the longest first, and by cluster", () => {
    const { registry } = registryFixture(
      `
kind: ServiceEntry
metadata: {name: api}
spec:
  hosts: [api.test]
  ports: [{number: 80, name: http, protocol: HTTP}]
  resolution: STATIC
  endpoints: [{address: 10.1.0.1}, {address: 10.2.0.1}, {address: 192.0.2.1}, {address: 10.2.0.2, network: own}]
`,
      {
        networks: {
          networks: {
            wide: { endpoints: [{ fromCidr: "10.0.0.0/8" }, { fromRegistry: "Kubernetes" }] },
            narrow: { endpoints: [{ fromCidr: "10.2.0.0/16" }] },
          },
        },
      },
    );
    assert.deepEqual(
      registry.endpoints(api, 80).map(({ network }) => network),
      ["wide", "narrow", "wide", "own"],
    );
  });

  it("shares labels and localities between endpoints that agree", () => {
    const { registry } = registryFixture(`
kind: ServiceEntry
metadata: {name: api}
spec:
  hosts: [api.test]
  ports: [{number: 80, name: http, protocol: HTTP}, {number: 81, name: more, protocol: HTTP}]
  resolution: STATIC
  endpoints: [{address: 10.0.0.1, locality: eu, labels: {app: api}}, {address: 10.0.0.2, locality: eu, labels: {app: api}}]
`);
    const [first, second] = registry.endpoints(api, 80);
    assert.equal(first?.labels, second?.labels);
    assert.equal(first?.locality, second?.locality);
    assert.equal(first?.labels, registry.endpoints(api, 81)[0]?.labels);
  });
});

describe("workload selectors", () => {
  const entry = `
kind: ServiceEntry
metadata: {name: api}
spec:
  hosts: [api.test]
  ports: [{number: 80, name: http, protocol: HTTP, targetPort: 8080}]
  resolution: STATIC
  location: MESH_INTERNAL
  workloadSelector: {labels: {app: api, tier: back}}
---
`;

  it("takes WorkloadEntries of its namespace that carry all labels", () => {
    const { registry, put, remove } = registryFixture(`${entry}
kind: WorkloadEntry
metadata: {name: one, labels: {tier: back}}
spec: {address: 10.0.0.1, labels: {app: api, tier: front}, ports: {http: 9000}, serviceAccount: vm}
---
kind: WorkloadEntry
metadata: {name: two}
spec: {address: 10.0.0.2, labels: {app: api, tier: back}}
---
kind: WorkloadEntry
metadata: {name: half}
spec: {address: 10.0.0.3, labels: {app: api}}
---
kind: WorkloadEntry
metadata: {name: far, namespace: bank}
spec: {address: 10.0.0.4, labels: {app: api, tier: back}}
`);
    assert.deepEqual(registry.endpoints(api, 80).map(at), ["10.0.0.1:9000", "10.0.0.2:8080"]);
    assert.deepEqual(
      registry.endpoints(api, 80).map(({ workload }) => workload),
      ["one", "two"],
    );
    assert.deepEqual(registry.serviceAccounts(api, 80), ["shop/vm"]);
    put("{kind: WorkloadEntry, metadata: {name: half}, spec: {address: 10.0.0.3, labels: {app: api, tier: back}}}");
    remove("WorkloadEntry/shop/one");
    assert.deepEqual(registry.endpoints(api, 80).map(at), ["10.0.0.3:8080", "10.0.0.2:8080"]);
  });

  it("fills in what a WorkloadEntry leaves to its WorkloadGroup", () => {
    const { registry } = registryFixture(`${entry}
kind: WorkloadGroup
metadata: {name: vms}
spec:
  metadata: {labels: {app: api, tier: back}}
  template: {serviceAccount: vm, network: vms, locality: eu/west, ports: {http: 9000}, weight: 5}
---
kind: WorkloadEntry
metadata: {name: one, annotations: {istio.io/autoRegistrationGroup: vms}}
spec: {address: 10.0.0.1, locality: us}
---
kind: WorkloadEntry
metadata: {name: two, annotations: {istio.io/autoRegistrationGroup: gone}}
spec: {address: 10.0.0.2}
`);
    const [one, ...others] = registry.endpoints(api, 80);
    assert.deepEqual(others, []);
    assert.deepEqual(
      [one?.address, one?.port, one?.serviceAccount, one?.network, one?.locality.region, one?.weight],
      ["10.0.0.1", 9000, "vm", "vms", "us", 5],
    );
    assert.deepEqual(
      [one?.workload, registry.workloadAt("10.0.0.1", "shop")?.name],
      ["vms", "vms"],
      "machines of a group are one workload",
    );
    assert.deepEqual(
      registry.instancesAt("10.0.0.1", "shop").map(({ service }) => service.host),
      ["api.test"],
    );
  });

  it("takes Pods too, ready or not, by the entry's own target port", () => {
    const { registry } = registryFixture(`${entry}
kind: Pod
metadata: {name: api-5d4f-x1, labels: {app: api, tier: back, pod-template-hash: 5d4f}}
spec: {serviceAccountName: api, containers: [{ports: [{name: http, containerPort: 1}]}]}
status: {podIP: 10.0.1.1, phase: Running, conditions: [{type: Ready, status: "False"}]}
---
kind: Pod
metadata: {name: done, labels: {app: api, tier: back}}
status: {podIP: 10.0.1.2, phase: Succeeded}
---
kind: Pod
metadata: {name: young, labels: {app: api, tier: back}}
status: {phase: Pending}
`);
    assert.deepEqual(registry.endpoints(api, 80).map(at), ["10.0.1.1:8080"]);
    assert.deepEqual(
      registry.endpoints(api, 80).map(({ health, workload, serviceAccount }) => [health, workload, serviceAccount]),
      [["unhealthy", "api", "api"]],
    );
  });

  it("an empty selector takes every workload of the namespace", () => {
    const { registry } = registryFixture(`
kind: ServiceEntry
metadata: {name: api}
spec: {hosts: [api.test], ports: [{number: 80, name: http, protocol: HTTP}], resolution: STATIC, workloadSelector: {}}
---
{kind: WorkloadEntry, metadata: {name: one}, spec: {address: 10.0.0.1}}
`);
    assert.deepEqual(registry.endpoints(api, 80).map(at), ["10.0.0.1:80"]);
    assert.equal(registry.instancesAt("10.0.0.1", "shop").length, 1);
  });
});

describe("how far ServiceEntries are seen", () => {
  const entry = (name: string, namespace: string, exportTo: string): string => `
kind: ServiceEntry
metadata: {name: ${name}, namespace: ${namespace}}
spec: {hosts: [${name}.test], ports: [{number: 80, name: http, protocol: HTTP}], resolution: DNS, exportTo: [${exportTo}]}
`;
  const exportOf = (fixture: ReturnType<typeof registryFixture>, namespace: string, name: string): readonly string[] | undefined =>
    fixture.registry.service({ namespace, host: `${name}.test` })?.exportTo;
  const serviceEntryVisibility = {
    defaultVisibility: "NAMESPACE",
    applyToSidecars: true,
    policies: [
      { visibility: "PUBLIC", matchingRules: [{ namespaceSelector: { matchLabels: { open: "yes" } } }] },
      { visibility: "NONE", matchingRules: [{ namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "hidden" } } }] },
    ],
  };

  it("is what the mesh allows their namespace, and never more than they say", () => {
    const yaml = [
      entry("all", "shop", '"*"'),
      entry("away", "shop", "bank"),
      entry("nobody", "shop", '"~"'),
      entry("open", "bank", "bank, shop"),
      entry("gone", "hidden", '"*"'),
      '\nkind: Namespace\nmetadata: {name: bank, labels: {open: "yes"}}',
    ].join("---");
    const capped = registryFixture(yaml, { mesh: { serviceEntryVisibility }, recheck: true });
    assert.deepEqual(exportOf(capped, "shop", "all"), ["."]);
    assert.deepEqual(exportOf(capped, "shop", "away"), ["~"]);
    assert.deepEqual(exportOf(capped, "shop", "nobody"), ["~"]);
    assert.deepEqual(exportOf(capped, "bank", "open"), ["bank", "shop"]);
    assert.deepEqual(exportOf(capped, "hidden", "gone"), ["~"]);
    capped.put('kind: Namespace\nmetadata: {name: shop, labels: {open: "yes"}}');
    assert.deepEqual(exportOf(capped, "shop", "all"), ["*"]);
  });

  it("is what they say where the mesh does not speak of sidecars", () => {
    const mesh = { serviceEntryVisibility: { ...serviceEntryVisibility, applyToSidecars: false } };
    assert.deepEqual(exportOf(registryFixture(entry("all", "shop", '"*"'), { mesh }), "shop", "all"), ["*"]);
  });
});
