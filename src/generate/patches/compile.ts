import type { Registry } from "@bufbuild/protobuf";
import type { Labels } from "../../base/labels.ts";
import { type ConfigObject, objectKey } from "../../config/object.ts";
import { messageFaults } from "../../envoy/patch/apply.ts";
import { faultText } from "../../envoy/patch/fault.ts";
import { type ApplyTo, merges, type Operation, type Patch, type PatchContext } from "../../envoy/patch/patch.ts";
import { regexFault } from "../../envoy/patch/regex.ts";
import {
  type EnvoyFilter,
  EnvoyFilter_ApplyTo,
  EnvoyFilter_Patch_Operation,
  EnvoyFilter_PatchContext,
  type EnvoyFilter_EnvoyConfigObjectMatch as Match,
  type EnvoyFilter_EnvoyConfigObjectPatch as ObjectPatch,
} from "../../gen/istio/networking/v1alpha3/envoy_filter_pb.js";
import type { ExtensionNeed } from "../../model/proxy.ts";
import type { TargetName } from "../lookups/policy-target.ts";
import { matchOf } from "./compile-match.ts";
import { idleFields } from "./idle-fields.ts";
import { effectiveOperation, PATCHED_TYPES } from "./patched-types.ts";
import { type PatchValue, readValue } from "./read-value.ts";

/** An EnvoyFilter ready to be applied. */
export interface CompiledFilter {
  readonly key: string;
  /** Of the object it was made from. */
  readonly hash: string;
  readonly namespace: string;
  readonly name: string;
  readonly createdAt: number;
  readonly priority: number;
  /** Labels of the workloads it is for; undefined = all of its namespace (of the mesh, in the root namespace). */
  readonly selector: Labels | undefined;
  readonly targets: readonly TargetName[];
  readonly patches: readonly CompiledPatch[];
}

/** One patch of it, usable or not. */
export interface CompiledPatch {
  readonly index: number;
  readonly applyTo: ApplyTo;
  readonly operation: Operation;
  readonly context: PatchContext | "ANY" | "WAYPOINT";
  /** What is applied; undefined where the patch is left out everywhere, for the reasons in `faults`. */
  readonly patch: Patch | undefined;
  readonly faults: readonly string[];
  /** What has no effect in it, though the rest has. */
  readonly notes: readonly string[];
  /** Which proxies it is for: a regular expression on their version, and metadata they must have. */
  readonly version: string;
  readonly metadata: Labels;
  /** Extensions that Envoy must have for it. */
  readonly needs: readonly ExtensionNeed[];
}

/** Reads and checks all patches of an EnvoyFilter. Never throws: what is wrong with a patch stands in it. */
export function compileFilter(object: ConfigObject<EnvoyFilter>, registry: Registry): CompiledFilter {
  const key = objectKey(object);
  return {
    key,
    hash: object.hash,
    namespace: object.namespace,
    name: object.name,
    createdAt: object.createdAt,
    priority: object.spec.priority,
    selector: object.spec.workloadSelector?.labels,
    targets: object.spec.targetRefs.map(({ group, kind, name }) => ({ group, kind, name })),
    patches: object.spec.configPatches.map((patch, index) =>
      compilePatch(patch, { index, id: `${key}#${index}@${object.hash}`, registry }),
    ),
  };
}

interface Place {
  readonly index: number;
  readonly id: string;
  readonly registry: Registry;
}

function compilePatch({ applyTo: kind, match, patch }: ObjectPatch, { index, id, registry }: Place): CompiledPatch {
  const applyTo = EnvoyFilter_ApplyTo[kind] as ApplyTo | "INVALID";
  const written = EnvoyFilter_Patch_Operation[patch?.operation ?? 0] as Operation | "INVALID";
  const context = EnvoyFilter_PatchContext[match?.context ?? 0] as CompiledPatch["context"];
  const base = { index, context, version: match?.proxy?.proxyVersion ?? "", metadata: match?.proxy?.metadata ?? {} };
  if (applyTo === "INVALID" || written === "INVALID")
    return {
      ...base,
      applyTo: "CLUSTER",
      operation: "MERGE",
      patch: undefined,
      faults: ["applyTo and operation must be set"],
      notes: [],
      needs: [],
    };
  const operation = effectiveOperation(applyTo, written);
  const { schema } = PATCHED_TYPES[applyTo];
  const value = operation === "REMOVE" ? undefined : readValue(schema, patch?.value ?? {}, { registry, merging: merges({ operation }) });
  const faults = [
    ...versionFaults(base.version),
    ...ineffective({ applyTo, operation, context }),
    ...valueFaults(value, { applyTo, operation, registry }),
  ];
  const compiled = (): Patch => ({
    id,
    applyTo,
    operation,
    context: context === "WAYPOINT" ? "ANY" : context,
    ...matchOf(match as Match | undefined),
    ...(value !== undefined && { value: value.message }),
  });
  return {
    ...base,
    applyTo,
    operation,
    patch: faults.length === 0 ? compiled() : undefined,
    faults,
    notes: [
      ...(applyTo === "BOOTSTRAP" ? [AT_START] : []),
      ...(value === undefined ? [] : [...value.notes, ...idleFields({ applyTo, operation, schema, message: value.message })]),
    ],
    needs: value?.needs ?? [],
  };
}

/** What a running proxy shows nothing of. */
const AT_START = "takes effect when the bootstrap of a proxy is made, before the proxy starts";

const LONGEST_EXPRESSION = 1024;

function versionFaults(expression: string): readonly string[] {
  if (expression.length > LONGEST_EXPRESSION) return [`match.proxy.proxyVersion is longer than ${LONGEST_EXPRESSION} characters`];
  const fault = regexFault(expression);
  return fault === undefined ? [] : [`match.proxy.proxyVersion ${fault}`];
}

/** Combinations that nothing comes of. */
function ineffective({ applyTo, operation, context }: Pick<CompiledPatch, "applyTo" | "operation" | "context">): readonly string[] {
  if (context === "WAYPOINT") return ["waypoints are not served here"];
  return PATCHED_TYPES[applyTo].operations.includes(operation) ? [] : [`${operation} does nothing to ${applyTo}`];
}

/** What is put in whole must be right by itself; what is merged is judged by the result. */
function valueFaults(
  value: PatchValue | undefined,
  { applyTo, operation, registry }: { applyTo: ApplyTo; operation: Operation; registry: Registry },
): readonly string[] {
  if (value === undefined || value.faults.length > 0 || merges({ operation })) return value?.faults ?? [];
  return messageFaults(PATCHED_TYPES[applyTo].schema, value.message, registry).map(faultText);
}
