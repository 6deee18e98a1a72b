import fc from "fast-check";
import { expect, it } from "vitest";
import { holds } from "../../../test/support/holds.ts";
import { MeshConfigSchema } from "../../gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import { PROCESS_FIELDS } from "../../settings/process-fields.ts";
import { judgeMesh } from "./load-mesh.ts";
import type { JsonMap } from "./merge-layers.ts";

it("judging a mesh never throws, whatever the files hold", () => {
  const key = fc.oneof(
    fc.constantFrom(...Object.keys(PROCESS_FIELDS.fields), ...MeshConfigSchema.fields.map((field) => field.jsonName), "meshNetworks"),
    fc.string(),
  );
  const content = fc.dictionary(key, fc.jsonValue({ maxDepth: 4 })).map((value) => value as JsonMap);
  const file = content.map((value) => ({ path: "mesh.yaml", content: value, lineOf: () => 1 }));
  holds(
    fc.property(file, file, file, (main, include, networks) => {
      const load = judgeMesh({ layers: [main, include], networks, faults: [], paths: [], hash: "" }, { baseDir: "/", env: {} });
      expect(load.ok || load.problems.length > 0).toBe(true);
    }),
    { numRuns: 300 },
  );
});
