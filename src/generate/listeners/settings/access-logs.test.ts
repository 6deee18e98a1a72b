import { fromJson, type JsonObject } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { MeshConfigSchema } from "../../../gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import { TelemetrySchema } from "../../../gen/istio/telemetry/v1alpha1/telemetry_pb.js";
import type { Side } from "../traits.ts";
import { accessLogsOf } from "./access-logs.ts";

const file = (name: string): JsonObject => ({ name, envoyFileAccessLog: { path: `/${name}`, logFormat: { text: "x" } } });
const MESH: JsonObject = {
  accessLogFile: "/mesh",
  extensionProviders: [file("a"), file("b"), { name: "far", envoyHttpAls: { service: "far.test", port: 80 } }],
};

/** Paths of the logs in force, with their filters. */
function logs(
  rules: readonly (readonly JsonObject[])[],
  { mesh = {}, side = "client" as Side }: { mesh?: JsonObject; side?: Side } = {},
): readonly string[] {
  return accessLogsOf({
    mesh: fromJson(MeshConfigSchema, { ...MESH, ...mesh }),
    telemetry: rules.map((accessLogging) => fromJson(TelemetrySchema, { accessLogging: [...accessLogging] })),
    side,
    lookup: () => undefined,
  }).map((log) => `${log.kind === "file" ? log.path : log.kind}${log.expression === undefined ? "" : ` where ${log.expression}`}`);
}

const providers = (...names: readonly string[]): JsonObject => ({ providers: names.map((name) => ({ name })) });

describe("access logs", () => {
  it("are the mesh's file where nobody says anything, or nothing that can be done", () => {
    expect(logs([])).toEqual(["/mesh"]);
    expect(logs([], { mesh: { accessLogFile: "" } })).toEqual([]);
    expect(logs([[providers("nobody")]])).toEqual(["/mesh"]);
    expect(logs([[providers("far")]])).toEqual(["/mesh"]);
  });

  it("are the mesh's default providers, unless an object names others", () => {
    const mesh = { defaultProviders: { accessLogging: ["a"] } };
    expect(logs([], { mesh })).toEqual(["/a"]);
    expect(logs([[providers("b")]], { mesh })).toEqual(["/b"]);
    expect(logs([[{ disabled: true }]], { mesh })).toEqual([]);
  });

  it("are those the nearest object names, with its filter", () => {
    expect(logs([[providers("a")], [providers("b")]])).toEqual(["/b"]);
    expect(logs([[{ ...providers("a", "b"), filter: { expression: "true" } }]])).toEqual(["/a where true", "/b where true"]);
    expect(logs([[providers("a")], [{ disabled: true, ...providers("a") }]])).toEqual([]);
  });

  it("are those of the side", () => {
    const rules = [
      [
        { ...providers("a"), match: { mode: "SERVER" } },
        { ...providers("b"), match: { mode: "CLIENT" } },
      ],
    ];
    expect(logs(rules)).toEqual(["/b"]);
    expect(logs(rules, { side: "server" })).toEqual(["/a"]);
    expect(logs(rules, { side: "gateway" })).toEqual(["/b"]);
  });
});
