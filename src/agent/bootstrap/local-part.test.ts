import { fromBinary, type JsonObject, toBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { BootstrapSchema } from "../../gen/envoy/config/bootstrap/v3/bootstrap_pb.js";
import { builtInBootstrap } from "../../generate/bootstrap-built-in.ts";
import { localPart } from "./local-part.ts";

const node = {
  id: "sidecar~10.0.0.1~web.shop~shop.svc.cluster.local",
  cluster: "web.shop",
  metadata: { NAME: "web", LABELS: { app: "web" }, list: [1, "two", null, true, { three: 3.5 }], empty: "", none: null, no: false },
  locality: { region: "r", zone: "z", subzone: "" },
};

const PLACE = { node, adminPort: 15_005, onlyIpv6: false, logJson: false, xdsSocket: "/run/XDS", sdsSocket: "/run/sds" };
const local = localPart(PLACE);

describe("the local part of a bootstrap", () => {
  it("written after the control plane's makes one bootstrap of both", () => {
    const given = builtInBootstrap({ ADMIN_PORT: 15_000, ENVOY_STATUS_PORT: 15_021 } as JsonObject);
    const bootstrap = fromBinary(BootstrapSchema, Buffer.concat([given, local]));
    expect(bootstrap.node).toMatchObject({
      id: node.id,
      cluster: node.cluster,
      metadata: node.metadata,
      locality: { region: "r", zone: "z" },
    });
    expect(bootstrap.admin?.address?.address).toMatchObject({
      case: "socketAddress",
      value: { address: "127.0.0.1", portSpecifier: { case: "portValue", value: 15_005 } },
    });
    expect(bootstrap.admin?.accessLog).toHaveLength(1);
    expect(bootstrap.staticResources?.clusters.map(({ name }) => name)).toEqual(["prometheus_stats", "agent", "sds-grpc", "xds-grpc"]);
    expect(bootstrap.staticResources?.listeners.map(({ name }) => name)).toEqual(["0.0.0.0_15021"]);
    expect(bootstrap.dynamicResources?.adsConfig?.grpcServices).toHaveLength(1);
  });

  it("has Envoy log JSON where the agent does, and be asked over IPv6 where there is no other", () => {
    const given = builtInBootstrap({ ADMIN_PORT: 15_000 } as JsonObject);
    const merged = Buffer.concat([given, localPart({ ...PLACE, onlyIpv6: true, logJson: true })]);
    const { applicationLogConfig, admin } = fromBinary(BootstrapSchema, merged);
    expect(applicationLogConfig?.logFormat?.logFormat).toMatchObject({ case: "jsonFormat", value: { msg: "%j", scope: "envoy %n" } });
    expect(admin?.address?.address.value).toMatchObject({ address: "::1" });
  });

  it("leads to the agent's sockets, and says nothing that its own message does not", () => {
    const bootstrap = fromBinary(BootstrapSchema, local);
    const paths = bootstrap.staticResources?.clusters.map((cluster) => {
      const host = cluster.loadAssignment?.endpoints[0]?.lbEndpoints[0]?.hostIdentifier;
      const address = host?.case === "endpoint" ? host.value.address?.address : undefined;
      return [cluster.name, address?.case === "pipe" ? address.value.path : undefined, cluster.connectTimeout?.seconds];
    });
    expect(paths).toEqual([
      ["sds-grpc", "/run/sds", 1n],
      ["xds-grpc", "/run/XDS", 1n],
    ]);
    expect(Buffer.from(toBinary(BootstrapSchema, bootstrap)).length).toBe(local.length);
  });
});
