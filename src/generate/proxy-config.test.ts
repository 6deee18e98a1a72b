import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { MeshConfigSchema } from "../gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import { narrowedProxyConfig, proxyConfigOf, proxyConfigText } from "./proxy-config.ts";

const mesh = create(MeshConfigSchema, { defaultConfig: { concurrency: 4, statusPort: 15_020, proxyMetadata: { A: "1" } } });

describe("PROXY_CONFIG of a node", () => {
  it("takes the place of the mesh's, as Istio's agents mean it", () => {
    const config = proxyConfigOf(mesh, proxyConfigText({ statusPort: 1 }, false));
    expect([config?.statusPort, config?.concurrency]).toEqual([1, undefined]);
    expect(proxyConfigOf(mesh, proxyConfigText(undefined, true))?.concurrency).toBe(4);
  });

  it("stands over the mesh's where it is only the workload's own, whatever the mesh becomes", () => {
    const text = proxyConfigText({ status_port: 1, proxyMetadata: { B: "2" }, concurrency: 0 }, true);
    const config = proxyConfigOf(mesh, text);
    expect([config?.statusPort, config?.concurrency, config?.proxyMetadata]).toEqual([1, 0, { A: "1", B: "2" }]);
    expect(proxyConfigOf(create(MeshConfigSchema, { defaultConfig: { proxyAdminPort: 7 } }), text)?.proxyAdminPort).toBe(7);
  });

  it("is read as users write it, and a field that is wrong costs none of the others", () => {
    const written = { drainDuration: "1m30s", terminationDrainDuration: "100ms", concurrency: "2", statusPort: "x", nobody: 1 };
    for (const isOverMesh of [false, true]) {
      const config = proxyConfigOf(mesh, proxyConfigText(written, isOverMesh));
      expect(config?.drainDuration?.seconds).toBe(90n);
      expect(config?.terminationDrainDuration?.nanos).toBe(100_000_000);
      expect(config?.concurrency).toBe(2);
    }
  });

  it("is shared by those who say nothing that matters", () => {
    expect(narrowedProxyConfig(proxyConfigText({ statusPort: 1 }, true), ["concurrency"])).toBe("");
    expect(narrowedProxyConfig(proxyConfigText({ statusPort: 1 }, false), ["concurrency"])).toBe("{}");
    const narrowed = narrowedProxyConfig(proxyConfigText({ statusPort: 1, concurrency: 2 }, true), ["concurrency"]);
    expect([proxyConfigOf(mesh, narrowed)?.concurrency, proxyConfigOf(mesh, narrowed)?.statusPort]).toEqual([2, 15_020]);
  });
});
