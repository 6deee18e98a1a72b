import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { NodeSchema } from "../gen/envoy/config/core/v3/base_pb.js";
import type { World } from "../generate/world.ts";
import type { ProxyView } from "../model/proxy.ts";
import { viewOfNode } from "./view-of-node.ts";

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
