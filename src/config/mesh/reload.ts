import { isDeepStrictEqual } from "node:util";
import { equals } from "@bufbuild/protobuf";
import { MeshConfigSchema } from "../../gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import { MeshNetworksSchema } from "../../gen/istio/mesh/v1alpha1/mesh_networks_pb.js";
import { PROCESS_FIELDS } from "../../settings/process-fields.ts";
import type { SettingDef } from "../../settings/setting-def.ts";
import type { Shape } from "../../settings/shape.ts";
import { SETTINGS } from "../../settings/table.ts";
import type { LoadedMesh } from "./load-mesh.ts";

/** One field of the process that a reload changes. */
export interface ReloadChange {
  /** `listen.grpcAddr`, `env.CLUSTER_ID`. */
  readonly field: string;
  readonly needsRestart: boolean;
  /** For the log and /debug/mesh. */
  readonly sentence: string;
}

export interface ReloadComparison {
  readonly changes: readonly ReloadChange[];
  /** Some of them take effect only at the next start. */
  readonly needsRestart: boolean;
  readonly meshChanged: boolean;
  readonly networksChanged: boolean;
}

/** What a reload changes, and what of it has to wait for a restart because it was used to build the process. Pure. */
export function compareReload(old: LoadedMesh, next: LoadedMesh): ReloadComparison {
  const changes = [...fieldChanges(old, next), ...settingChanges(old, next)];
  return {
    changes,
    needsRestart: changes.some((change) => change.needsRestart),
    meshChanged: !equals(MeshConfigSchema, old.mesh, next.mesh),
    networksChanged: !equals(MeshNetworksSchema, old.networks, next.networks),
  };
}

function* fieldChanges(old: LoadedMesh, next: LoadedMesh): Generator<ReloadChange> {
  const { env: _settings, ...fields } = PROCESS_FIELDS.fields;
  for (const [name, shape] of Object.entries<Shape>(fields)) {
    yield* shapeChanges(shape, name, [valueAt(old.process, name), valueAt(next.process, name)]);
  }
  yield* valueChange("ca.address", [old.process.ca.address, next.process.ca.address], false);
  const addresses = ({ process }: LoadedMesh): readonly string[] => process.configSources.map((source) => source.address);
  yield* valueChange("configSources", [addresses(old), addresses(next)], false);
}

function* shapeChanges(shape: Shape, name: string, values: readonly [unknown, unknown]): Generator<ReloadChange> {
  if (shape.is !== "group") return yield* valueChange(name, values, shape.restart === true);
  for (const [field, inner] of Object.entries(shape.fields)) {
    yield* shapeChanges(inner, `${name}.${field}`, [valueAt(values[0], field), valueAt(values[1], field)]);
  }
}

/** Addresses to listen on are settings too, but they were compared as `listen`. */
function* settingChanges(old: LoadedMesh, next: LoadedMesh): Generator<ReloadChange> {
  for (const [key, def] of Object.entries<SettingDef>(SETTINGS)) {
    if (def.type === "address") continue;
    const shown = (settings: unknown): unknown => (def.type === "duration" ? secondsOf(valueAt(settings, key)) : valueAt(settings, key));
    yield* valueChange(`env.${def.env}`, [shown(old.settings), shown(next.settings)], def.restart === true);
  }
}

function* valueChange(field: string, [before, after]: readonly [unknown, unknown], needsRestart: boolean): Generator<ReloadChange> {
  if (isDeepStrictEqual(before, after)) return;
  const sentence = `${field} changes from ${show(before)} to ${show(after)}${needsRestart ? "; it takes effect when istiod is restarted" : ""}`;
  yield { field, needsRestart, sentence };
}

const valueAt = (value: unknown, key: string): unknown =>
  typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>)[key] : undefined;

/** Durations are kept in milliseconds; shown as they may be written. */
const secondsOf = (ms: unknown): unknown => (typeof ms === "number" ? `${ms / 1_000}s` : ms);

const show = (value: unknown): string => JSON.stringify(value) ?? "nothing";
