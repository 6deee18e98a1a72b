import { existsSync, globSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fromJson, type JsonObject, type JsonValue } from "@bufbuild/protobuf";
import { load } from "js-yaml";
import { NodeSchema } from "../../src/gen/envoy/config/core/v3/base_pb.js";
import { meshOf, type TestMesh } from "../support/mesh-from.ts";
import { CORPUS } from "./xds-cases.ts";

/** A case of the corpus as a mesh in memory, with all its proxies. */
export function corpusMesh(name: string): TestMesh {
  const dir = join(CORPUS, "cases", name);
  const read = (file: string): string => readFileSync(join(dir, file), "utf8");
  const yaml = (file: string): JsonObject => (existsSync(join(dir, file)) ? ((load(read(file)) ?? {}) as JsonObject) : {});
  return meshOf({
    documents: globSync("config/**/*.yaml", { cwd: dir }).sort().map(read),
    mesh: yaml("mesh.yaml"),
    ...(existsSync(join(dir, "networks.yaml")) && { networks: yaml("networks.yaml") }),
    nodes: readdirSync(join(dir, "nodes"))
      .sort()
      .map((file) => ({
        name: `${name}/${file.replace(".json", "")}`,
        node: fromJson(NodeSchema, JSON.parse(read(`nodes/${file}`)) as JsonValue, { ignoreUnknownFields: true }),
      })),
  });
}
