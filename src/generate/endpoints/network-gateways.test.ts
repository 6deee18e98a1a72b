import { fromJson, type JsonObject } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { MeshNetworksSchema } from "../../gen/istio/mesh/v1alpha1/mesh_networks_pb.js";
import { NO_LOCALITY } from "../../model/locality.ts";
import {
  type GatewayService,
  gatewayNames,
  gatewaysOf,
  inView,
  type NetworkedEndpoint,
  resolvedGateways,
  throughGateways,
  withoutDetours,
} from "./network-gateways.ts";

const networks = (json: JsonObject, services: readonly GatewayService[] = [PLAIN_SERVICE]) =>
  gatewaysOf(fromJson(MeshNetworksSchema, { networks: json }), services);

const PLAIN_SERVICE = {
  host: "gw.edge.svc.cluster.local",
  addresses: ["192.0.2.7", "lb.example.com"],
  network: undefined,
  port: 15_443,
};
const LABELLED_SERVICE = {
  host: "east-west.edge.svc.cluster.local",
  addresses: ["192.0.2.8", "2001:db8::8"],
  network: "c",
  port: 15_444,
};

const endpoint = (
  address: string,
  network: string,
  options: { readonly weight?: number; readonly plain?: boolean } = {},
): NetworkedEndpoint => ({
  endpoint: {
    address,
    port: 80,
    unixPath: false,
    weight: options.weight ?? 1,
    health: "healthy",
    mutualTls: options.plain !== true,
    workload: "",
  },
  locality: NO_LOCALITY,
  labels: {},
  network,
});

const world = [
  endpoint("near", "a"),
  endpoint("far-1", "b"),
  endpoint("far-2", "b", { weight: 3 }),
  endpoint("far-plain", "b", { plain: true }),
  endpoint("unknown", ""),
];
const sent = (...args: Parameters<typeof throughGateways>): readonly string[] =>
  throughGateways(...args).map(({ endpoint: { address, port, weight } }) => `${address}:${port} w${weight}`);

describe("endpoints in other networks", () => {
  it("are reached through the gateway there, with the sum of their weights; those without mutual TLS are not", () => {
    const gateways = networks({ b: { gateways: [{ address: "192.0.2.1", port: 15443 }] } });
    expect(sent(world, gateways, { network: { own: "a", view: [] } })).toEqual(["near:80 w1", "192.0.2.1:15443 w4", "unknown:80 w1"]);
  });

  it("are divided among several gateways without breaking the proportions", () => {
    const gateways = networks({ b: { gateways: [{ address: "192.0.2.1" }, { address: "192.0.2.2", port: 443 }] } });
    expect(sent(world, gateways, { network: { own: "a", view: [] } })).toEqual([
      "near:80 w2",
      "192.0.2.1:15443 w4",
      "192.0.2.2:443 w4",
      "unknown:80 w2",
    ]);
  });

  it("are reached directly where their network has no gateway", () =>
    expect(sent(world, networks({}), { network: { own: "a", view: [] } })).toHaveLength(5));

  it("are all behind gateways for a client that does not say where it is", () =>
    expect(sent(world, networks({ b: { gateways: [{ address: "192.0.2.1" }] } }), { network: { own: "", view: [] } })).toEqual([
      "near:80 w1",
      "192.0.2.1:15443 w4",
      "unknown:80 w1",
    ]));

  it("leave those that are reached directly alone, also where two objects name one address", () => {
    const twice = world.slice(0, 1).flatMap((one) => [one, { ...one, endpoint: { ...one.endpoint, weight: 20 } }]);
    expect(sent(twice, networks({}), { network: { own: "a", view: [] } })).toEqual(["near:80 w1", "near:80 w20"]);
  });

  it("are not seen by clients that ask for other networks", () =>
    expect(inView(world, { own: "a", view: ["a"] }).map(({ endpoint }) => endpoint.address)).toEqual(["near", "unknown"]));

  it("are none of the business of the gateway of this one, unless they have none of theirs", () => {
    const reached = (gateways: Parameters<typeof withoutDetours>[2]): readonly string[] =>
      withoutDetours(world, { own: "a", view: [] }, gateways).map(({ endpoint }) => endpoint.address);
    expect(reached(networks({ b: { gateways: [{ address: "192.0.2.1" }] } }))).toEqual(["near", "unknown"]);
    expect(reached(networks({}))).toEqual(world.map(({ endpoint }) => endpoint.address));
  });

  it("need a gateway with an address; a Service may have it, and names must have been resolved", () => {
    const named = networks({
      b: { gateways: [{ registryServiceName: "gw.edge.svc.cluster.local" }, { address: "gw.example.com", port: 443 }] },
    });
    expect(gatewayNames(named)).toEqual(["gw.example.com", "lb.example.com"]);
    expect(resolvedGateways(named, () => []).get("b")).toEqual([{ address: "192.0.2.7", port: 15_443 }]);
    expect(resolvedGateways(named, (name) => (name === "gw.example.com" ? ["192.0.2.9", "2001:db8::9"] : [])).get("b")).toEqual([
      { address: "192.0.2.7", port: 15_443 },
      { address: "192.0.2.9", port: 443 },
      { address: "2001:db8::9", port: 443 },
    ]);
    expect(sent([endpoint("far", "b")], named, { network: { own: "a", view: [] } })).toEqual([
      "192.0.2.7:15443 w1",
      "gw.example.com:443 w1",
      "lb.example.com:15443 w1",
    ]);
  });

  it("may have a gateway that says so by its labels", () =>
    expect(networks({}, [LABELLED_SERVICE]).get("c")).toEqual([
      { address: "192.0.2.8", port: 15_444 },
      { address: "2001:db8::8", port: 15_444 },
    ]));

  it("are reached through gateways of the client's families only", () => {
    const far = [endpoint("far", "c")];
    expect(sent(far, networks({}, [LABELLED_SERVICE]), { network: { own: "a", view: [] } })).toEqual(["192.0.2.8:15444 w2"]);
    expect(sent(far, networks({}, [LABELLED_SERVICE]), { network: { own: "a", view: [] }, family: "v6" })).toEqual([
      "2001:db8::8:15444 w2",
    ]);
    expect(sent(far, networks({}, [LABELLED_SERVICE]), { network: { own: "a", view: [] }, family: "all" })).toHaveLength(2);
  });
});
