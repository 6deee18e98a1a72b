import { assert, describe, it } from "vitest";
import type { EndpointSlice, Service, ServiceState } from "./service.ts";
import { serviceRules } from "./service-rules.ts";

const NETWORK = { nodeAddress: "10.1.255.2", machineAddress: "10.1.255.1", range: "10.1.0.0/16" };

const service = (spec: Service["spec"]): Service => ({
  apiVersion: "v1",
  kind: "Service",
  metadata: { name: "echo", namespace: "shop" },
  spec: { clusterIP: "10.1.128.5", ports: [{ name: "http", port: 80 }], ...spec },
});

const slice = (endpoints: EndpointSlice["endpoints"], port = 8080): EndpointSlice => ({
  apiVersion: "discovery.k8s.io/v1",
  kind: "EndpointSlice",
  metadata: { name: "echo-1", namespace: "shop", labels: { "kubernetes.io/service-name": "echo" } },
  addressType: "IPv4",
  ports: [{ name: "http", port, protocol: "TCP" }],
  endpoints: endpoints ?? null,
});

const at = (address: string, conditions: object = { ready: true }) => ({ addresses: [address], conditions });
const rulesOf = (state: ServiceState, match: RegExp): readonly string[] =>
  serviceRules(state, NETWORK)
    .split("\n")
    .filter((line) => match.test(line));

describe("the rules for Services", () => {
  it("spread connections evenly over the endpoints that are ready", () => {
    const slices = [slice([at("10.1.0.1"), at("10.1.0.2"), at("10.1.0.3", { ready: false }), at("10.1.0.4")])];
    const front = "-A SERVICES -d 10.1.128.5/32 -p tcp -m tcp --dport 80";
    assert.deepEqual(rulesOf({ services: [service({})], slices }, /DNAT/), [
      `${front} -m statistic --mode random --probability 0.3333333333 -j DNAT --to-destination 10.1.0.1:8080`,
      `${front} -m statistic --mode random --probability 0.5000000000 -j DNAT --to-destination 10.1.0.2:8080`,
      `${front} -j DNAT --to-destination 10.1.0.4:8080`,
    ]);
  });

  it("fall back on endpoints that are ending while they serve", () => {
    const slices = [
      slice([at("10.1.0.1", { ready: false, serving: true, terminating: true }), at("10.1.0.2", { ready: false, serving: false })]),
    ];
    assert.match(rulesOf({ services: [service({})], slices }, /DNAT/).join(), /10\.1\.0\.1:8080$/);
  });

  it("refuse connections to a Service without endpoints, and give nothing to a headless one", () => {
    assert.match(rulesOf({ services: [service({})], slices: [] }, /10\.1\.128\.5/).join(), /FORWARD .* REJECT/);
    assert.deepEqual(rulesOf({ services: [service({ clusterIP: "None" })], slices: [slice([at("10.1.0.1")])] }, /DNAT|tcp-reset/), []);
  });

  it("stand for the node's port and a load balancer's address too", () => {
    const balanced = {
      ...service({ ports: [{ name: "http", port: 80, nodePort: 30123 }] }),
      status: { loadBalancer: { ingress: [{ ip: "10.1.192.1" }] } },
    };
    const fronts = rulesOf({ services: [balanced], slices: [slice([at("10.1.0.1")])] }, /DNAT/).map((line) => line.split(" ")[3]);
    assert.deepEqual(fronts, ["10.1.128.5/32", "10.1.192.1/32", "10.1.255.2/32"]);
  });
});
