import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { Cluster_DiscoveryType, ClusterSchema } from "../../src/gen/envoy/config/cluster/v3/cluster_pb.js";
import { ClusterLoadAssignmentSchema } from "../../src/gen/envoy/config/endpoint/v3/endpoint_pb.js";
import { RouteConfigurationSchema } from "../../src/gen/envoy/config/route/v3/route_pb.js";
import { encoded } from "../../src/wire/encode.ts";
import type { Encoded } from "../../src/wire/encoded.ts";
import { CLUSTER_TYPE, ENDPOINT_TYPE, LISTENER_TYPE, ROUTE_TYPE } from "../../src/wire/type-urls.ts";
import { assertEnvoyAccepts, assertEnvoyAcceptsAll, type Offer } from "./envoy-validate.ts";
import { meshFrom } from "./mesh-from.ts";

const WEB = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: web, namespace: default}
spec:
  hosts: [web.test]
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}, {number: 443, name: tls, protocol: TLS}]
  endpoints: [{address: 10.1.0.1}]
`;

const EDS_CLUSTER = "outbound|80||web.test";

/** What a proxy is really offered, with one resource in the place of another, or of none. */
async function offerWith(label: string, ...replaced: readonly Encoded[]): Promise<Offer> {
  const mesh = meshFrom(WEB);
  const [proxy] = mesh.proxies;
  if (proxy === undefined) throw new Error("no proxy");
  const resources = new Map(await mesh.resources(proxy));
  for (const one of replaced)
    resources.set(one.typeUrl, { failed: [], resources: new Map([...(resources.get(one.typeUrl)?.resources ?? []), [one.name, one]]) });
  return { label, resources };
}

describe("assertEnvoyAccepts", () => {
  it("accepts what is generated, from many proxies at once", async () => {
    await assertEnvoyAcceptsAll([await offerWith("one"), await offerWith("two")]);
  });

  it("finds a bad cluster", async () => {
    const cluster = create(ClusterSchema, {
      name: "broken",
      clusterDiscoveryType: { case: "type", value: Cluster_DiscoveryType.ORIGINAL_DST },
    });
    const { resources } = await offerWith("one", encoded({ typeUrl: CLUSTER_TYPE, name: "broken" }, ClusterSchema, cluster));
    await expect(assertEnvoyAccepts(resources)).rejects.toThrow(/original_dst|ORIGINAL_DST/i);
  });

  it("finds a bad assignment", async () => {
    const host = {
      case: "endpoint",
      value: {
        address: {
          address: { case: "socketAddress", value: { address: "not-an-address", portSpecifier: { case: "portValue", value: 80 } } },
        },
      },
    } as const;
    const assignment = create(ClusterLoadAssignmentSchema, {
      clusterName: EDS_CLUSTER,
      endpoints: [{ lbEndpoints: [{ hostIdentifier: host }] }],
    });
    const { resources } = await offerWith(
      "one",
      encoded({ typeUrl: ENDPOINT_TYPE, name: EDS_CLUSTER }, ClusterLoadAssignmentSchema, assignment),
    );
    await expect(assertEnvoyAccepts(resources)).rejects.toThrow(/not-an-address/);
  });

  it("finds a bad route table, and says whose it is", async () => {
    const twice = { name: "twice", domains: ["same.test"] };
    const table = create(RouteConfigurationSchema, { name: "80", virtualHosts: [twice, { ...twice, name: "again" }] });
    const offers = [
      await offerWith("first"),
      await offerWith("second", encoded({ typeUrl: ROUTE_TYPE, name: "80" }, RouteConfigurationSchema, table)),
      await offerWith("third"),
    ];
    await expect(assertEnvoyAcceptsAll(offers)).rejects.toThrow(/^Envoy refuses what is offered to\nsecond: .*same\.test/s);
  });

  it("finds a route table that nobody serves and an address that two listeners bind", async () => {
    const { resources } = await offerWith("one");
    await expect(assertEnvoyAccepts(new Map([...resources].filter(([type]) => type !== ROUTE_TYPE)))).rejects.toThrow(
      "names the route table 80, which is not served",
    );
    const listeners = resources.get(LISTENER_TYPE)?.resources ?? new Map<string, Encoded>();
    const copies = new Map([...listeners].flatMap(([name, one]) => [[name, one] as const, [`${name} copy`, one] as const]));
    await expect(assertEnvoyAccepts(new Map([...resources, [LISTENER_TYPE, { resources: copies, failed: [] }]]))).rejects.toThrow(
      "two listeners bind 0.0.0.0:15001",
    );
  });
});
