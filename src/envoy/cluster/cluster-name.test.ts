import { describe, expect, it } from "vitest";
import { outboundClusterName, parseOutboundClusterName, sniClusterName } from "./cluster-name.ts";

describe("names of outbound clusters", () => {
  const parts = { port: 80, subset: "v1", host: "web.shop.svc.cluster.local" };

  it("are read back from both forms", () => {
    expect(parseOutboundClusterName(outboundClusterName(parts))).toEqual({ ...parts, sni: false });
    expect(parseOutboundClusterName(sniClusterName(parts))).toEqual({ ...parts, sni: true });
    expect(parseOutboundClusterName(outboundClusterName({ ...parts, subset: "" }))).toEqual({ ...parts, subset: "", sni: false });
    expect(parseOutboundClusterName("outbound_.80_._.a_.b.test")).toEqual({ port: 80, subset: "", host: "a_.b.test", sni: true });
  });

  for (const other of [
    "",
    "outbound",
    "outbound|x||a.test",
    "outbound|80|",
    "outbound|0||a.test",
    "inbound|80||",
    "BlackHoleCluster",
    "outbound_.80",
  ]) {
    it(`leave ${JSON.stringify(other)}`, () => expect(parseOutboundClusterName(other)).toBeUndefined());
  }
});
