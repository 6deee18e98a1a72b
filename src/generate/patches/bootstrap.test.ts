import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { meshFrom } from "../../../test/support/mesh-from.ts";
import { BootstrapSchema } from "../../gen/envoy/config/bootstrap/v3/bootstrap_pb.js";
import { messageRegistry } from "../../wire/json.ts";
import { patchBootstrapOf } from "./bootstrap.ts";

const HEADER = `
proxies:
- {name: web, namespace: shop, labels: {app: web}}
- {name: edge, type: router, namespace: shop, address: 10.9.9.8}
---`;

const filter = (name: string, patches: string): string => `
apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: {name: ${name}, namespace: shop}
spec:
  configPatches:
${patches}
---`;

async function patched(yaml: string, proxy: number) {
  const mesh = meshFrom(HEADER + yaml);
  mesh.world.patches.use(await messageRegistry());
  const view = mesh.proxies[proxy]?.view;
  if (view === undefined) throw new Error("no such proxy");
  const bootstrap = create(BootstrapSchema, { statsServerVersionOverride: 7n, staticResources: { clusters: [{ name: "first" }] } });
  const { bootstrap: after, outcome } = patchBootstrapOf(mesh.world.patches.plans, view, bootstrap);
  return { before: bootstrap, after, outcome };
}

describe("patches of bootstraps", () => {
  it("merge: messages are gone into, lists are appended to or replaced", async () => {
    const yaml = filter(
      "more",
      `  - {applyTo: BOOTSTRAP, patch: {operation: MERGE, value: {flags_path: /x, static_resources: {clusters: [{name: second}]}}}}`,
    );
    const { before, after } = await patched(yaml, 0);
    expect(after.flagsPath).toBe("/x");
    expect(after.statsServerVersionOverride).toBe(7n);
    expect(after.staticResources?.clusters.map(({ name }) => name)).toEqual(["first", "second"]);
    expect(before.staticResources?.clusters).toHaveLength(1);
    const replaced = await patched(yaml.replace("MERGE,", "MERGE_AND_REPLACE_LIST,"), 0);
    expect(replaced.after.staticResources?.clusters.map(({ name }) => name)).toEqual(["second"]);
  });

  it("are for the proxies they name", async () => {
    const yaml =
      filter("gateways", `  - {applyTo: BOOTSTRAP, match: {context: GATEWAY}, patch: {operation: MERGE, value: {flags_path: /gateway}}}`) +
      filter(
        "sidecars",
        `  - {applyTo: BOOTSTRAP, match: {context: SIDECAR_INBOUND}, patch: {operation: MERGE, value: {flags_path: /sidecar}}}`,
      );
    expect((await patched(yaml, 0)).after.flagsPath).toBe("/sidecar");
    expect((await patched(yaml, 1)).after.flagsPath).toBe("/gateway");
  });

  it("that Envoy would not start with are left out", async () => {
    const { after, outcome } = await patched(
      filter(
        "mixed",
        `  - {applyTo: BOOTSTRAP, patch: {operation: MERGE, value: {static_resources: {clusters: [{connect_timeout: 1s}]}}}}
  - {applyTo: BOOTSTRAP, patch: {operation: MERGE, value: {flags_path: /kept}}}`,
      ),
      0,
    );
    expect(after.flagsPath).toBe("/kept");
    expect(after.staticResources?.clusters).toHaveLength(1);
    expect(outcome.faults.map(({ patch }) => patch.split("@")[0])).toEqual(["EnvoyFilter/shop/mixed#0"]);
  });

  it("are none where no EnvoyFilter is for it", async () => {
    const { before, after } = await patched("\n", 0);
    expect(after).toBe(before);
  });
});
