import { clone, create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { MeshConfigSchema } from "../../gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import { MeshNetworksSchema } from "../../gen/istio/mesh/v1alpha1/mesh_networks_pb.js";
import type { Env } from "../../settings/read-settings.ts";
import { judgeMesh, type LoadedMesh } from "./load-mesh.ts";
import type { JsonMap } from "./merge-layers.ts";
import { compareReload } from "./reload.ts";

function loaded(content: JsonMap = {}, env: Env = {}): LoadedMesh {
  const layers = [{ path: "mesh.yaml", content, lineOf: () => undefined }];
  const load = judgeMesh({ layers, networks: undefined, faults: [], paths: [], hash: "" }, { baseDir: "/base", env });
  if (!load.ok) throw new Error(load.problems.map((problem) => problem.message).join());
  return load.config;
}

describe("compareReload", () => {
  it("finds nothing where nothing changed", () => {
    expect(compareReload(loaded(), loaded())).toEqual({ changes: [], needsRestart: false, meshChanged: false, networksChanged: false });
  });

  const table: readonly [field: string, content: JsonMap, needsRestart: boolean, sentence: string][] = [
    [
      "listen.httpAddr",
      { listen: { httpAddr: ":1" } },
      true,
      'listen.httpAddr changes from ":8080" to ":1"; it takes effect when istiod is restarted',
    ],
    ["services.ca", { services: { ca: false } }, true, "services.ca changes from true to false; it takes effect when istiod is restarted"],
    ["sidecar", { sidecar: true }, true, "sidecar changes from false to true; it takes effect when istiod is restarted"],
    ["namespaces", { namespaces: ["a"] }, true, 'namespaces changes from [] to ["a"]; it takes effect when istiod is restarted'],
    ["ca.address", { ca: { address: "x:1" } }, false, 'ca.address changes from "" to "x:1"'],
    [
      "configSources",
      { configSources: [{ address: "fs:///x" }] },
      false,
      'configSources changes from ["fs://./etc/istio/conf","k8s://"] to ["fs:///x"]',
    ],
    ["env.TRUST_DOMAIN", { env: { TRUST_DOMAIN: "d" } }, false, 'env.TRUST_DOMAIN changes from "" to "d"'],
    [
      "env.DEFAULT_WORKLOAD_CERT_TTL",
      { env: { DEFAULT_WORKLOAD_CERT_TTL: "90m" } },
      true,
      'env.DEFAULT_WORKLOAD_CERT_TTL changes from "86400s" to "5400s"; it takes effect when istiod is restarted',
    ],
    [
      "env.CLUSTER_ID",
      { env: { CLUSTER_ID: "c" } },
      true,
      'env.CLUSTER_ID changes from "Kubernetes" to "c"; it takes effect when istiod is restarted',
    ],
  ];
  for (const [field, content, needsRestart, sentence] of table) {
    it(`${field} ${needsRestart ? "needs a restart" : "is applied at once"}`, () => {
      const got = compareReload(loaded(), loaded(content));
      expect(got.changes).toEqual([{ field, needsRestart, sentence }]);
      expect(got.needsRestart).toBe(needsRestart);
    });
  }

  it("does not report an address that the environment holds fast", () => {
    const env = { HTTP_ADDR: ":9" };
    expect(compareReload(loaded({}, env), loaded({ listen: { httpAddr: ":1" } }, env)).changes).toEqual([]);
  });

  it("says whether the mesh or its networks changed", () => {
    const old = loaded();
    const mesh = clone(MeshConfigSchema, old.mesh);
    mesh.trustDomain = "x";
    expect(compareReload(old, { ...old, mesh }).meshChanged).toBe(true);
    expect(compareReload(old, { ...old, networks: create(MeshNetworksSchema, { networks: { n: {} } }) }).networksChanged).toBe(true);
  });
});
