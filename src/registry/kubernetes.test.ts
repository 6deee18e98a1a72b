import assert from "node:assert/strict";
import type { JsonObject } from "@bufbuild/protobuf";
import { describe, it } from "vitest";
import type { Endpoint } from "../model/endpoint.ts";
import { registryFixture } from "./registry-fixture.ts";

const at = (endpoint: Endpoint): string => `${endpoint.address}:${endpoint.port}`;
const web = { namespace: "shop", host: "web.shop.svc.cluster.local" };

const SERVICE = `
kind: Service
metadata: {name: web}
spec:
  clusterIP: 10.96.0.1
  selector: {app: web}
  ports: [{name: http, port: 80, targetPort: web}, {name: grpc-api, port: 90, targetPort: 9090}]
---
`;
const POD = `
kind: Pod
metadata: {name: web-5d4f-x1, labels: {app: web, pod-template-hash: 5d4f, security.istio.io/tlsMode: istio}}
spec: {nodeName: n1, serviceAccountName: web, containers: [{ports: [{name: web, containerPort: 8080}]}]}
status: {podIP: 10.1.0.1, phase: Running, conditions: [{type: Ready, status: "True"}]}
---
`;
const NODE = `
kind: Node
metadata: {name: n1, labels: {topology.kubernetes.io/region: eu, topology.kubernetes.io/zone: eu-1, topology.istio.io/subzone: rack-2}}
---
`;
const SLICE = `
kind: EndpointSlice
metadata: {name: web-abc, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{name: http, port: 8080, protocol: TCP}, {name: grpc-api, port: 9090}, {name: dns, port: 53, protocol: UDP}]
endpoints:
- {addresses: [10.1.0.1], targetRef: {kind: Pod, name: web-5d4f-x1}, nodeName: n1}
- {addresses: [10.1.0.2], conditions: {ready: false}, nodeName: n1}
- {addresses: [10.1.0.3], conditions: {ready: false, serving: true, terminating: true}}
- {addresses: [10.1.0.4], conditions: {ready: false, serving: false, terminating: true}}
---
`;

describe("services of Kubernetes", () => {
  it("declares name.namespace.svc.domain with protocols by name", () => {
    const { registry } = registryFixture(`
kind: Service
metadata: {name: web, labels: {app: web}, annotations: {networking.istio.io/exportTo: "., bank"}}
spec:
  clusterIP: 10.96.0.1
  clusterIPs: [10.96.0.1, "FD00::1"]
  selector: {app: web}
  internalTrafficPolicy: Local
  trafficDistribution: PreferClose
  publishNotReadyAddresses: true
  sessionAffinity: ClientIP
  ports:
  - {name: http, port: 80}
  - {port: 90}
  - {name: dns, port: 53, protocol: UDP}
`);
    const service = registry.service(web);
    assert.deepEqual(service?.ports, [
      { name: "http", number: 80, protocol: "HTTP" },
      { name: "", number: 90, protocol: "Auto" },
    ]);
    assert.deepEqual(service?.addresses, ["10.96.0.1", "fd00::1"]);
    assert.deepEqual(
      [service?.resolution, service?.headless, service?.exportTo, service?.nodeLocal, service?.trafficDistribution],
      ["static", false, [".", "bank"], true, "preferClose"],
    );
    assert.deepEqual([service?.source, service?.objectKey, service?.selector], ["Kubernetes", "Service/shop/web", { app: "web" }]);
    assert.deepEqual([service?.publishNotReadyAddresses, service?.clientAffinity], [true, true]);
  });

  it("knows headless Services and ExternalNames", () => {
    const { registry } = registryFixture(`
{kind: Service, metadata: {name: web}, spec: {clusterIP: None, ports: [{port: 80}]}}
---
{kind: Service, metadata: {name: alias}, spec: {type: ExternalName, externalName: www.example.com, ports: [{name: http, port: 80}]}}
`);
    const headless = registry.service(web);
    assert.deepEqual([headless?.headless, headless?.resolution, headless?.addresses, headless?.autoAddresses], [true, "none", [], []]);
    const alias = registry.service({ namespace: "shop", host: "alias.shop.svc.cluster.local" });
    assert.deepEqual(
      [alias?.resolution, alias?.externalName, alias?.meshExternal, alias?.autoAddresses],
      ["alias", "www.example.com", true, []],
    );
  });
});

describe("endpoints of Kubernetes", () => {
  it("come from EndpointSlices, with what their pods and nodes say", () => {
    const { registry } = registryFixture(SERVICE + POD + NODE + SLICE);
    const endpoints = registry.endpoints(web, 80);
    assert.deepEqual(endpoints.map(at), ["10.1.0.1:8080", "10.1.0.2:8080", "10.1.0.3:8080", "10.1.0.4:8080"]);
    assert.deepEqual(
      endpoints.map(({ health }) => health),
      ["healthy", "unhealthy", "draining", "terminating"],
    );
    const [first, second] = endpoints;
    assert.deepEqual(
      [first?.workload, first?.serviceAccount, first?.nodeName, first?.tlsMode, first?.labels.app, first?.objectKey],
      ["web", "web", "n1", "istio", "web", "EndpointSlice/shop/web-abc"],
    );
    assert.deepEqual(first?.locality, { region: "eu", zone: "eu-1", subzone: "rack-2" });
    assert.deepEqual([second?.locality.region, second?.tlsMode, second?.workload], ["eu", "disabled", ""]);
    assert.deepEqual(registry.endpoints(web, 90).map(at)[0], "10.1.0.1:9090");
    assert.deepEqual(registry.serviceAccounts(web, 80), ["shop/web"]);
  });

  it("a pod's own label goes before its node's locality", () => {
    const { registry } = registryFixture(SERVICE + POD.replace("app: web", "app: web, istio-locality: us.east.b") + NODE + SLICE);
    assert.deepEqual(registry.endpoints(web, 80)[0]?.locality, { region: "us", zone: "east", subzone: "b" });
  });

  it("the system namespace names the network of pods", () => {
    const { registry } = registryFixture(
      `${SERVICE + POD + SLICE}{kind: Namespace, metadata: {name: istio-system, labels: {topology.istio.io/network: net-1}}}`,
    );
    assert.deepEqual(
      registry.endpoints(web, 80).map(({ network }) => network),
      ["net-1", "net-1", "net-1", "net-1"],
    );
  });

  it("the network of the whole cluster goes before ranges of addresses", () => {
    const ranges = { far: { endpoints: [{ fromCidr: "10.1.0.0/16" }] } };
    const networksOf = (networks: JsonObject): readonly string[] =>
      registryFixture(SERVICE + POD + SLICE, { networks: { networks } })
        .registry.endpoints(web, 80)
        .map(({ network }) => network);
    assert.deepEqual(new Set(networksOf(ranges)), new Set(["far"]));
    assert.deepEqual(new Set(networksOf({ ...ranges, own: { endpoints: [{ fromRegistry: "Kubernetes" }] } })), new Set(["own"]));
  });

  it("an address whose pod is not known yet waits for it, where pods are known at all", () => {
    const other = POD.replace("web-5d4f-x1", "web-5d4f-x2").replace("10.1.0.1", "10.1.0.9");
    const { registry, put, remove } = registryFixture(SERVICE + other + SLICE);
    assert.deepEqual(registry.endpoints(web, 80).map(at), ["10.1.0.2:8080", "10.1.0.3:8080", "10.1.0.4:8080"]);
    put(POD);
    assert.deepEqual([registry.endpoints(web, 80)[0]?.address, registry.endpoints(web, 80)[0]?.tlsMode], ["10.1.0.1", "istio"]);
    remove("Pod/shop/web-5d4f-x1");
    remove("Pod/shop/web-5d4f-x2");
    assert.deepEqual([registry.endpoints(web, 80)[0]?.address, registry.endpoints(web, 80)[0]?.tlsMode], ["10.1.0.1", "disabled"]);
  });

  it("an address in two slices counts once, ready if either says so", () => {
    const other = SLICE.replace("web-abc", "web-xyz").replace("10.1.0.1]", "10.1.0.2]");
    const { registry } = registryFixture(SERVICE + SLICE + other);
    assert.deepEqual(
      registry.endpoints(web, 80).map((endpoint) => [endpoint.address, endpoint.health]),
      [
        ["10.1.0.1", "healthy"],
        ["10.1.0.2", "healthy"],
        ["10.1.0.3", "draining"],
        ["10.1.0.4", "terminating"],
      ],
    );
  });

  it("slices of both families count, slices of names do not", () => {
    const v6 = SLICE.replace("web-abc", "web-v6")
      .replace("IPv4", "IPv6")
      .replaceAll(/10\.1\.0\.(\d)/g, '"FD00::$1"');
    const names = SLICE.replace("web-abc", "web-fqdn")
      .replace("IPv4", "FQDN")
      .replaceAll(/10\.1\.0\.(\d)/g, "n$1.test");
    const { registry } = registryFixture(SERVICE + SLICE + v6 + names);
    assert.deepEqual(
      registry
        .endpoints(web, 80)
        .map(({ address }) => address)
        .sort()
        .slice(4),
      ["fd00::1", "fd00::2", "fd00::3", "fd00::4"],
    );
    assert.equal(registry.endpoints(web, 80).length, 8);
  });

  const ENDPOINTS = `
kind: Endpoints
metadata: {name: web}
subsets:
- addresses: [{ip: 10.1.0.7, targetRef: {kind: Pod, name: web-5d4f-x1}}]
  notReadyAddresses: [{ip: 10.1.0.8}]
  ports: [{name: http, port: 8080}]
---
`;
  it("Endpoints count where there is no EndpointSlice", () => {
    const { registry, remove, put } = registryFixture(SERVICE + ENDPOINTS + SLICE);
    assert.equal(registry.endpoints(web, 80).length, 4);
    remove("EndpointSlice/shop/web-abc");
    assert.deepEqual(
      registry.endpoints(web, 80).map((one) => [at(one), one.health]),
      [
        ["10.1.0.7:8080", "healthy"],
        ["10.1.0.8:8080", "unhealthy"],
      ],
    );
    put(SLICE);
    assert.equal(registry.endpoints(web, 80).length, 4);
  });

  it("pods stand in where nothing lists addresses, and resolve named target ports", () => {
    const { registry } = registryFixture(`${SERVICE + POD}
{kind: Pod, metadata: {name: other, labels: {app: web}}, spec: {containers: [{ports: [{name: admin, containerPort: 1}]}]}, status: {podIP: 10.1.0.9}}
`);
    assert.deepEqual(registry.endpoints(web, 80).map(at), ["10.1.0.1:8080"]);
    assert.deepEqual(registry.endpoints(web, 90).map(at), ["10.1.0.9:9090", "10.1.0.1:9090"]);
  });

  it("named target ports are TCP ports of containers, and of sidecars among init containers", () => {
    const { registry } = registryFixture(`${SERVICE}
kind: Pod
metadata: {name: one, labels: {app: web}}
spec:
  initContainers:
  - {name: setup, ports: [{name: web, containerPort: 1}]}
  - {name: proxy, restartPolicy: Always, ports: [{name: web, containerPort: 8443}]}
  containers: [{name: app, ports: [{name: web, containerPort: 53, protocol: UDP}]}]
status: {podIP: 10.1.0.9}
`);
    assert.deepEqual(registry.endpoints(web, 80).map(at), ["10.1.0.9:8443"]);
  });

  it("publishNotReadyAddresses makes everybody healthy", () => {
    const { registry } = registryFixture(
      SERVICE.replace("clusterIP: 10.96.0.1", "clusterIP: None\n  publishNotReadyAddresses: true") + SLICE,
    );
    assert.deepEqual(new Set(registry.endpoints(web, 80).map(({ health }) => health)), new Set(["healthy"]));
  });

  it("a Service selects WorkloadEntries too", () => {
    const { registry } = registryFixture(`${SERVICE + SLICE}
{kind: WorkloadEntry, metadata: {name: vm}, spec: {address: 10.2.0.1, labels: {app: web}, ports: {http: 7000}, serviceAccount: vm}}
`);
    assert.deepEqual(registry.endpoints(web, 80).map(at).at(-1), "10.2.0.1:7000");
    assert.deepEqual(registry.endpoints(web, 90).map(at).at(-1), "10.2.0.1:9090");
  });

  it("a WorkloadEntry that knows no port of that name does not serve it", () => {
    const entry = (ports: string): string => `
{kind: WorkloadEntry, metadata: {name: vm}, spec: {address: 10.2.0.1, labels: {app: web}, ports: ${ports}}}
`;
    const { registry, put } = registryFixture(SERVICE + entry("{}"));
    assert.deepEqual(
      [registry.endpoints(web, 80), registry.endpoints(web, 90)].map((all) => all.map(at)),
      [[], ["10.2.0.1:9090"]],
    );
    assert.deepEqual(
      registry.instancesAt("10.2.0.1", "shop").map(({ endpoint }) => at(endpoint)),
      ["10.2.0.1:9090"],
    );
    put(entry("{web: 7001}"));
    assert.deepEqual(registry.endpoints(web, 80).map(at), ["10.2.0.1:7001"]);
  });

  it("a headless Service selects no WorkloadEntries", () => {
    const headless = SERVICE.replace("10.96.0.1", "None");
    const { registry } = registryFixture(`${headless + SLICE}
{kind: WorkloadEntry, metadata: {name: vm}, spec: {address: 10.2.0.1, labels: {app: web}}}
`);
    assert.equal(registry.endpoints(web, 90).length, 4);
    assert.deepEqual(registry.instancesAt("10.2.0.1", "shop"), []);
  });
});

describe("by address", () => {
  it("finds the service ports a pod serves", () => {
    const { registry } = registryFixture(SERVICE + POD + SLICE);
    assert.deepEqual(
      registry
        .instancesAt("10.1.0.1", "shop")
        .map(({ service, servicePort, endpoint }) => [service.host, servicePort.number, endpoint.port]),
      [
        [web.host, 80, 8080],
        [web.host, 90, 9090],
      ],
    );
    assert.deepEqual(registry.instancesAt("10.1.0.1", "bank"), []);
    assert.deepEqual(registry.instancesAt("10.9.9.9", "shop"), []);
  });

  it("a pod serves what its Service's selector says, listed by a slice or not", () => {
    const others = SLICE.replace(/- \{addresses: \[10\.1\.0\.1\].*\n/, "");
    const { registry, put, runs } = registryFixture(SERVICE + POD + others);
    const ports = (): readonly number[] => registry.instancesAt("10.1.0.1", "shop").map(({ endpoint }) => endpoint.port);
    assert.deepEqual(registry.endpoints(web, 80).map(at), ["10.1.0.2:8080", "10.1.0.3:8080", "10.1.0.4:8080"]);
    assert.deepEqual(ports(), [8080, 9090]);
    const ran = runs(() => {
      put(SLICE);
      ports();
    });
    assert.equal(ran["registry.instancesAt"], 1, "a slice that names the address is looked at");
    assert.equal(ran["registry.served"], undefined, "endpoints are not");
    put(POD.replace("app: web,", "app: other,"));
    assert.deepEqual(ports(), [8080, 9090], "the slice still lists it");
    put(others);
    assert.deepEqual(ports(), []);
  });

  it("ports that no container names are for slices to say", () => {
    const { registry } = registryFixture(SERVICE + POD.replace("name: web, containerPort", "name: other, containerPort") + SLICE);
    const found = registry.instancesAt("10.1.0.1", "shop").map(({ servicePort, endpoint }) => [servicePort.number, endpoint.port]);
    assert.deepEqual(found, [
      [80, 8080],
      [90, 9090],
    ]);
  });

  it("knows the workload there", () => {
    const { registry } = registryFixture(POD + NODE);
    assert.deepEqual(registry.workloadAt("10.1.0.1", "shop"), {
      name: "web",
      namespace: "shop",
      labels: {
        app: "web",
        "pod-template-hash": "5d4f",
        "security.istio.io/tlsMode": "istio",
        "topology.kubernetes.io/region": "eu",
        "topology.kubernetes.io/zone": "eu-1",
        "topology.istio.io/subzone": "rack-2",
        "topology.istio.io/cluster": "Kubernetes",
        "kubernetes.io/hostname": "n1",
      },
      serviceAccount: "web",
      network: "",
      locality: { region: "eu", zone: "eu-1", subzone: "rack-2" },
      nodeName: "n1",
    });
    assert.equal(registry.workloadAt("10.1.0.1", "bank"), undefined);
  });

  it("a pod goes before a WorkloadEntry, and that before an inline endpoint", () => {
    const { registry, remove } = registryFixture(`${POD}
{kind: WorkloadEntry, metadata: {name: vm}, spec: {address: 10.1.0.1}}
---
{kind: ServiceEntry, metadata: {name: inline}, spec: {hosts: [a.test], resolution: STATIC, endpoints: [{address: 10.1.0.1, serviceAccount: own}]}}
`);
    assert.equal(registry.workloadAt("10.1.0.1", "shop")?.name, "web");
    remove("Pod/shop/web-5d4f-x1");
    assert.equal(registry.workloadAt("10.1.0.1", "shop")?.name, "vm");
    remove("WorkloadEntry/shop/vm");
    assert.deepEqual(registry.workloadAt("10.1.0.1", "shop")?.serviceAccount, "own");
    remove("ServiceEntry/shop/inline");
    assert.equal(registry.workloadAt("10.1.0.1", "shop"), undefined);
  });

  it("a pod on the host's network is nobody's address, but can be told by its name", () => {
    const other =
      "{kind: Service, metadata: {name: other}, spec: {selector: {app: other}, ports: [{name: http, port: 81, targetPort: 8081}]}}\n---\n";
    const { registry } = registryFixture(
      SERVICE +
        SLICE +
        POD.replace("nodeName: n1", "nodeName: n1, hostNetwork: true") +
        NODE +
        other +
        SLICE.replace("web-abc", "other").replace("service-name: web", "service-name: other"),
    );
    const pod = "web-5d4f-x1";
    assert.equal(registry.workloadAt("10.1.0.1", "shop"), undefined);
    assert.equal(registry.workloadAt("10.1.0.1", "shop", { pod })?.locality.zone, "eu-1");
    assert.deepEqual(
      registry.instancesAt("10.1.0.1", "shop", { pod }).map(({ service, endpoint }) => [service.host, endpoint.port]),
      [
        [web.host, 8080],
        [web.host, 9090],
      ],
      "of what its node's address is listed for, what selects the pod",
    );
    assert.equal(registry.workloadAt("10.1.0.9", "shop", { pod }), undefined, "another node's address");
    assert.equal(registry.workloadAt("10.1.0.1", "bank", { pod }), undefined);
  });

  it("a pod whose address is not known yet is the one of its name; one that has another address is not", () => {
    const { registry, put } = registryFixture(SERVICE + POD.replace("podIP: 10.1.0.1, ", ""));
    const at = { pod: "web-5d4f-x1" };
    const known = (): readonly unknown[] => [
      registry.workloadAt("10.1.0.1", "shop", at)?.serviceAccount,
      registry.instancesAt("10.1.0.1", "shop", at).map(({ endpoint }) => endpoint.port),
    ];
    assert.deepEqual(known(), ["web", [8080, 9090]]);
    put(POD);
    assert.deepEqual(known(), ["web", [8080, 9090]]);
    put(POD.replace("10.1.0.1", "10.1.0.5"));
    assert.deepEqual(known(), [undefined, []]);
  });

  it("spells IPv6 addresses one way", () => {
    const { registry } = registryFixture(`
kind: ServiceEntry
metadata: {name: a}
spec: {hosts: [a.test], ports: [{number: 80, name: http, protocol: HTTP}], resolution: STATIC, endpoints: [{address: "FD00:0::1"}]}
`);
    assert.equal(registry.instancesAt("fd00::1", "shop").length, 1);
    assert.equal(registry.instancesAt("fd00:0:0::1", "shop").length, 1);
    assert.equal(registry.workloadAt("fd00::1", "shop")?.name, "a-0");
  });
});
