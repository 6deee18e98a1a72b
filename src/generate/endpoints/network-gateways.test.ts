import { fromJson, type JsonObject } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { MeshNetworksSchema } from "../../gen/istio/mesh/v1alpha1/mesh_networks_pb.js";
import { NO_LOCALITY } from "../../model/locality.ts";
import { gatewaysOf, inOwnNetwork, type NetworkedEndpoint, throughGateways } from "./network-gateways.ts";

const networks = (json: JsonObject) => gatewaysOf(fromJson(MeshNetworksSchema, { networks: json }));

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
    expect(sent(world, gateways, { own: "a", view: [] })).toEqual(["near:80 w1", "192.0.2.1:15443 w4", "unknown:80 w1"]);
  });

  it("are divided among several gateways without breaking the proportions", () => {
    const gateways = networks({ b: { gateways: [{ address: "192.0.2.1" }, { address: "192.0.2.2", port: 443 }] } });
    expect(sent(world, gateways, { own: "a", view: [] })).toEqual([
      "near:80 w2",
      "192.0.2.1:15443 w4",
      "192.0.2.2:443 w4",
      "unknown:80 w2",
    ]);
  });

  it("are reached directly where their network has no gateway or the client's is not known", () => {
    expect(sent(world, networks({}), { own: "a", view: [] })).toHaveLength(5);
    expect(sent(world, networks({ b: { gateways: [{ address: "192.0.2.1" }] } }), { own: "", view: [] })).toHaveLength(5);
  });

  it("are not seen by clients that ask for other networks", () =>
    expect(sent(world, networks({}), { own: "a", view: ["a"] })).toEqual(["near:80 w1", "unknown:80 w1"]));

  it("are none of the business of the gateway of this one", () =>
    expect(inOwnNetwork(world, { own: "a", view: [] }).map(({ endpoint }) => endpoint.address)).toEqual(["near", "unknown"]));

  it("need a gateway with an address", () =>
    expect(networks({ b: { gateways: [{ registryServiceName: "gw.edge.svc.cluster.local" }, { address: "gw.example.com" }] } }).size).toBe(
      0,
    ));
});
