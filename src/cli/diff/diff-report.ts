import type { JsonValue, Registry } from "@bufbuild/protobuf";
import { objectKey } from "../../config/object.ts";
import { formatPath } from "../../config/problem.ts";
import { encodedJson } from "../../wire/json.ts";
import { redacted } from "../../wire/redact.ts";
import { shortTypeName } from "../../wire/type-urls.ts";
import type { Comparison, ResourceChange } from "./compare-worlds.ts";
import type { MeshProxy } from "./mesh-proxies.ts";
import type { ObjectChange, WantedChange } from "./wanted-changes.ts";

/** What `istioctl diff` found out, as scripts get it. */
export interface DiffReport {
  readonly objects: readonly ObjectChange[];
  /** Proxies looked at, and those of them that would be sent something. */
  readonly proxies: number;
  readonly touched: number;
  /** Different resources by type, whoever has them. */
  readonly resources: Readonly<Record<string, ChangeCounts>>;
  readonly classes: readonly TouchedClass[];
  /** What the change makes wrong between objects. */
  readonly problems: readonly ReportedProblem[];
  readonly notes: readonly string[];
  /** How many queries had to be computed for the change. */
  readonly queriesRun: number;
}

/** How many resources were added, changed, removed or cannot be made. */
export type ChangeCounts = Partial<Record<ResourceChange["change"], number>>;

export interface ReportedProblem {
  readonly code: string;
  readonly level: "error" | "warning";
  /** `VirtualService/shop/reviews`. */
  readonly object: string;
  readonly path: string;
  readonly message: string;
}

export interface TouchedClass {
  readonly proxies: readonly Pick<MeshProxy, "type" | "name" | "namespace" | "assumed">[];
  readonly resources: readonly ReportedResource[];
}

export interface ReportedResource {
  /** `cds`, `lds` … */
  readonly type: string;
  readonly name: string;
  readonly change: ResourceChange["change"];
  readonly message?: string;
  /** Only where all is asked for. */
  readonly before?: JsonValue;
  readonly after?: JsonValue;
}

/** What a report is made from. */
export interface ReportInput {
  readonly change: WantedChange;
  readonly comparison: Comparison;
  readonly notes: readonly string[];
  /** Undefined: resources by name only. */
  readonly registry: Registry | undefined;
}

/** Puts the findings together. Secrets that are written into a resource are not shown. */
export function diffReport({ change, comparison, notes, registry }: ReportInput): DiffReport {
  const touched = comparison.classes.filter(({ resources }) => resources.length > 0);
  return {
    objects: change.objects,
    proxies: sum(comparison.classes.map(({ proxies }) => proxies.length)),
    touched: sum(touched.map(({ proxies }) => proxies.length)),
    resources: countsOf(touched.flatMap(({ resources }) => resources)),
    classes: touched.map(({ proxies, resources }) => ({
      proxies: proxies.map(({ type, name, namespace, assumed }) => ({ type, name, namespace, assumed })),
      resources: resources.map((resource) => reported(resource, registry)),
    })),
    problems: comparison.problems.map(({ code, level, object, path, message }) => ({
      ...{ code, level, object: objectKey(object), path: formatPath(path), message },
    })),
    notes: [...change.notes, ...new Set(comparison.leftOut.map(leftOutText)), ...notes],
    queriesRun: sum([...comparison.runs.values()]),
  };
}

/** A patch is called `EnvoyFilter/ns/name#0@hash`. */
function leftOutText({ patch, resource, reason }: Comparison["leftOut"][number]): string {
  const [object = "", index = ""] = patch.replace(/@.*$/, "").split("#");
  return `${object}: configPatches[${index}] would be left out of ${resource}: ${reason}`;
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0);

function countsOf(changes: readonly ResourceChange[]): DiffReport["resources"] {
  const counts: Record<string, ChangeCounts> = {};
  const distinct = new Set(changes.map(({ typeUrl, change, name }) => [typeUrl, change, name].join("\n")));
  for (const one of distinct) {
    const [typeUrl = "", change = ""] = one.split("\n");
    const type = shortTypeName(typeUrl);
    const mine = counts[type] ?? {};
    counts[type] = mine;
    mine[change as ResourceChange["change"]] = (mine[change as ResourceChange["change"]] ?? 0) + 1;
  }
  return counts;
}

function reported({ typeUrl, name, change, before, after, message }: ResourceChange, registry: Registry | undefined): ReportedResource {
  const json = (resource: ResourceChange["before"]): JsonValue | undefined =>
    resource === undefined || registry === undefined ? undefined : redacted(encodedJson(registry, resource));
  const [old, now] = [json(before), json(after)];
  return {
    type: shortTypeName(typeUrl),
    name,
    change,
    ...(message !== undefined && { message }),
    ...(old !== undefined && { before: old }),
    ...(now !== undefined && { after: now }),
  };
}
