import assert from "node:assert/strict";
import { fromBinary } from "@bufbuild/protobuf";
import { describe, it } from "vitest";
import { meshFrom, type TestMesh } from "../../../test/support/mesh-from.ts";
import { PeerWorkloadSchema } from "../../gen/istio/v1/peer_workload_pb.js";
import { PEER_TYPE } from "../../wire/type-urls.ts";
import type { NameSet } from "../../xds/provider.ts";

const pod = (name: string, address: string, labels: string): string => `---
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: ${name}, namespace: shop}
spec: {address: ${address}, serviceAccount: web, labels: ${labels}}
`;

const MESH = `proxies:
- {name: one, namespace: shop, address: 10.9.0.1}
${pod("web-v1", "10.1.0.1", "{app: web, version: v1}")}${pod("job", "10.1.0.2", "{app.kubernetes.io/name: batch}")}`;

let ids = 1_000;
const setOf = (...names: readonly string[]): NameSet => ({ id: ids++, names: new Set(names) });

function provider(mesh: TestMesh) {
  const found = mesh.world.providers.find(({ typeUrl }) => typeUrl === PEER_TYPE);
  const view = mesh.proxies[0]?.view;
  assert.ok(found !== undefined && view !== undefined);
  return {
    offered: (names: NameSet) => found.offered(view, { wildcard: false, names }).resources,
    why: (name: string) => found.provenance(view, name),
  };
}

describe("peers", () => {
  it("are told to those who ask for them by identity and address, and no others", () => {
    const { offered, why } = provider(meshFrom(MESH));
    const found = offered(
      setOf(
        "shop/web/10.1.0.1",
        "shop/web/10.1.0.2",
        "other/web/10.1.0.1",
        "shop/web/10.1.0.9",
        "shop/job/10.1.0.1",
        "shop/10.1.0.1",
        "shop/web/x",
        "",
      ),
    );
    assert.deepEqual([...found.keys()], ["shop/web/10.1.0.1", "shop/web/10.1.0.2"]);
    const read = (name: string) => {
      const { $typeName: _, ...facts } = fromBinary(PeerWorkloadSchema, found.get(name)?.body ?? new Uint8Array());
      return Object.values(facts).join(";");
    };
    assert.equal(read("shop/web/10.1.0.1"), "web-v1;shop;web;v1;Kubernetes;web;v1");
    assert.equal(read("shop/web/10.1.0.2"), "job;shop;batch;;Kubernetes;;");
    assert.deepEqual(offered(setOf()).size, 0);
    assert.deepEqual(why("shop/web/10.1.0.1"), ["WorkloadEntry/shop/web-v1"]);
  });

  it("change for those alone who asked for them", () => {
    const mesh = meshFrom(MESH);
    const { offered } = provider(mesh);
    const [web, job] = [setOf("shop/web/10.1.0.1"), setOf("shop/web/10.1.0.2")];
    const before = { web: offered(web), job: offered(job) };
    mesh.change({ put: pod("web-v1", "10.1.0.1", "{app: web, version: v2}") });
    assert.equal(offered(job), before.job);
    assert.notEqual(offered(web), before.web);
    mesh.change({ remove: ["WorkloadEntry/shop/web-v1"] });
    assert.equal(offered(web).size, 0);
  });
});
