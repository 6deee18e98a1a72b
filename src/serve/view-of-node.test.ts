import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { NodeSchema } from "../gen/envoy/config/core/v3/base_pb.js";
import type { World } from "../generate/world.ts";
import type { ProxyView } from "../model/proxy.ts";
import { StreamRefusal } from "../xds/refusal.ts";
import type { Callers } from "./authenticated-streams.ts";
import { isForThisMachine, viewOfNode } from "./view-of-node.ts";

const VIEW = { id: "view" } as ProxyView;
const view = viewOfNode({ view: () => VIEW } as unknown as World);
const node = create(NodeSchema, { id: "sidecar~10.0.0.1~web.shop~shop.svc.cluster.local" });
const from = (address: string) => ({ address, header: () => undefined, certificate: undefined });

describe("who is served without proof", () => {
  it.for(["127.0.0.1:4000", "[::1]:4000", "::1", "[::ffff:127.0.0.1]:4000", "unix:/run/x"])("this machine, as %s", (address) => {
    expect(view(node, from(address))).toBe(VIEW);
  });

  it.for(["10.0.0.1:4000", "192.0.2.127:4000", "[2001:db8::1]:4000", "[::ffff:10.0.0.1]:4000"])("not another machine, %s", (address) => {
    expect(() => view(node, from(address))).toThrow("callers from other machines must prove who they are");
  });

  it("not a node of another form", () => {
    expect(() => view(create(NodeSchema, { id: "web" }), from("127.0.0.1:4000"))).toThrow("is not of the form");
  });
});

describe("what only this machine can call", () => {
  it.for(["localhost", "127.0.0.1", "127.8.0.1", "::1", "0:0:0:0:0:0:0:1", "::ffff:127.0.0.1"])("is what listens on %s", (host) => {
    expect(isForThisMachine(host)).toBe(true);
  });

  it.for(["", "0.0.0.0", "::", "10.0.0.1", "::1234", "::1:2", "127.example.com", "localhost.example.com", "::ffff:10.0.0.1"])(
    "is not what listens on %j",
    (host) => expect(isForThisMachine(host)).toBe(false),
  );
});

describe("who has proved an identity", () => {
  const peer = from("10.0.0.1:4000");
  const refusals: string[] = [];
  const seen: unknown[] = [];
  const owners: Record<string, readonly string[]> = {
    "10.0.0.9": ["Pod/bank/teller"],
    "10.0.0.8": ["Pod/bank/x", "WorkloadEntry/shop/y"],
    "10.0.0.7": ["Pod/bank/teller-east"],
    "10.0.0.6": ["Pod/bank/other-east"],
    "fd00::9": ["Pod/bank/teller-six"],
  };
  const networks: Record<string, string> = { "10.0.0.7@bank": "east", "10.0.0.6@bank": "east", "10.0.0.6@shop@west": "west" };
  const groups: Record<string, string> = {
    "WorkloadGroup/shop/western": "west",
    "WorkloadGroup/shop/eastern": "east",
    "WorkloadGroup/shop/any": "",
  };
  const world = {
    view(facts: unknown) {
      seen.push(facts);
      return VIEW;
    },
    inputs: {
      objects: {
        keys: (_: string, address: string) => owners[address] ?? [],
        get: (key: string) => (groups[key] === undefined ? undefined : { spec: { template: { network: groups[key] } } }),
      },
    },
    context: {
      registry: {
        isRemote: (cluster: string) => cluster === "west",
        workloadAt(address: string, namespace: string, { cluster = "" } = {}) {
          const network = networks[`${address}@${namespace}${cluster === "" ? "" : `@${cluster}`}`];
          return network !== undefined || namespace === "bank" ? { network: network ?? "" } : undefined;
        },
      },
    },
  } as unknown as World;
  const caller = {
    by: "token",
    identity: { trustDomain: "cluster.local", namespace: "shop", serviceAccount: "cart" },
    cluster: "east",
  } as const;
  const western = from("10.0.0.2:4000");
  const proven = viewOfNode(world, {
    callers: new WeakMap<object, typeof caller | { readonly cluster: string }>([
      [peer, caller],
      [western, { ...caller, cluster: "west" }],
    ]) as Callers,
    isRemote: (cluster) => cluster === "west",
    refused: (reason) => refusals.push(reason),
    seen: () => {},
    kept: (_proxy, _facts, viewed) => viewed(),
  });
  const says = (metadata: Record<string, string>, address = "10.0.0.1") =>
    create(NodeSchema, { id: `sidecar~${address}~web.shop~shop.svc.cluster.local`, metadata });

  it("is served from another machine as what it proved; an account it does not name is filled in", () => {
    expect(proven(says({}), peer)).toBe(VIEW);
    expect(proven(says({ NAMESPACE: "shop", SERVICE_ACCOUNT: "cart" }), peer)).toBe(VIEW);
    expect(seen).toMatchObject([{ view: { serviceAccount: "cart", proven: true } }, { view: { serviceAccount: "cart", proven: true } }]);
  });

  it.for([
    [{ NAMESPACE: "bank" }, "10.0.0.1", "namespace"],
    [{ SERVICE_ACCOUNT: "admin" }, "10.0.0.1", "service account"],
    [{ CLUSTER_ID: "west" }, "10.0.0.1", "cluster"],
    [{}, "10.0.0.9", "address"],
    [{ INSTANCE_IPS: "10.0.0.1,10.0.0.9" }, "10.0.0.1", "address"],
    [{}, "fd00:0:0:0::9", "address"],
    [{}, "::ffff:10.0.0.9", "address"],
    [{ INSTANCE_IPS: "10.0.0.1,0:0:0:0:0:FFFF:a00:9" }, "10.0.0.1", "address"],
    [{ INSTANCE_IPS: "10.0.0.1" }, "10.0.0.9", "address"],
    [{ NETWORK: "west" }, "10.0.0.9", "address"],
    [{ NETWORK: "east" }, "10.0.0.7", "address"],
    [{}, "10.0.0.7", "address"],
    [{ NETWORK: "west" }, "10.0.0.7", "address"],
    [{ NETWORK: "west", AUTO_REGISTER_GROUP: "any" }, "10.0.0.7", "address"],
    [{ NETWORK: "west", AUTO_REGISTER_GROUP: "eastern" }, "10.0.0.7", "address"],
    [{ NETWORK: "west", AUTO_REGISTER_GROUP: "nowhere" }, "10.0.0.7", "address"],
    [{ AUTO_REGISTER_GROUP: "western" }, "10.0.0.9", "address"],
  ] as const)("is refused and counted when its node says %j at %s", ([metadata, address, reason]) => {
    refusals.length = 0;
    expect(() => proven(says(metadata, address), peer)).toThrow(StreamRefusal);
    expect(refusals).toEqual([reason]);
  });

  it("is refused and counted where its id says another namespace than its metadata, since it is called by its id", () => {
    refusals.length = 0;
    const inId = (name: string) => create(NodeSchema, { id: `sidecar~10.0.0.1~${name}~x`, metadata: { NAMESPACE: "shop" } });
    expect(() => proven(inId("teller.bank"), peer)).toThrow(/the node says namespace "bank"/);
    expect(refusals).toEqual(["namespace"]);
    for (const name of ["web", "web.", "web.shop", "web.example.com.shop"]) expect(proven(inId(name), peer)).toBe(VIEW);
  });

  it("by a token of another cluster is a workload of that cluster and of no other", () => {
    seen.length = 0;
    proven(says({}, "10.0.0.2"), western);
    proven(says({ CLUSTER_ID: "west" }, "10.0.0.2"), western);
    expect(seen).toMatchObject([{ view: { clusterId: "west" } }, { view: { clusterId: "west" } }]);
    expect(() => proven(says({ CLUSTER_ID: "east" }, "10.0.0.2"), western)).toThrow(/the token is of "west"/);
  });

  it("says a name for its cluster that means nothing here", () => {
    expect(proven(says({ CLUSTER_ID: "Kubernetes" }), peer)).toBe(VIEW);
  });

  it("may have an address that another namespace has in another network, where configuration says that it is elsewhere", () => {
    expect(proven(says({ AUTO_REGISTER_GROUP: "western" }, "10.0.0.7"), peer)).toBe(VIEW);
    expect(proven(says({}, "10.0.0.6"), western)).toBe(VIEW);
    expect(() => proven(says({ NETWORK: "west" }, "10.0.0.6"), peer)).toThrow(StreamRefusal);
  });

  it("may have an address that its own namespace has too", () => {
    expect(proven(says({}, "10.0.0.8"), peer)).toBe(VIEW);
  });

  it("proves nothing for another connection", () => {
    expect(() => proven(says({}), from("10.0.0.1:4000"))).toThrow("must prove who they are");
  });
});
