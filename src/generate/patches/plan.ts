import { createRegistry, type Registry } from "@bufbuild/protobuf";
import { RE2JS } from "re2js";
import { contentHash } from "../../base/hash.ts";
import { Interned } from "../../base/interned.ts";
import { type Labels, matchesLabels } from "../../base/labels.ts";
import type { ConfigObject } from "../../config/object.ts";
import type { Query, Table } from "../../engine/index.ts";
import type { Patch } from "../../envoy/patch/patch.ts";
import type { EnvoyFilter } from "../../gen/istio/networking/v1alpha3/envoy_filter_pb.js";
import type { ExtensionList, ExtensionNeed, ProxyView } from "../../model/proxy.ts";
import type { GenerateContext } from "../context.ts";
import { isTargeted } from "../lookups/policy-target.ts";
import { type CompiledFilter, type CompiledPatch, compileFilter } from "./compile.ts";
import { hasExtension } from "./extension-list.ts";

type Context = Pick<GenerateContext, "engine" | "inputs">;

/** The patches that are for a proxy, in the order in which they are applied. Equal plans have equal ids. */
export interface PatchPlan {
  readonly id: string;
  readonly patches: readonly Patch[];
  /** Patches that are for the proxy, but that its Envoy would not take. */
  readonly refused: readonly PlanFault[];
  readonly registry: Registry;
}

export interface PlanFault {
  readonly patch: string;
  readonly reason: string;
}

/** The plan of a mesh without EnvoyFilters. */
export const NO_PLAN: PatchPlan = { id: "", patches: [], refused: [], registry: createRegistry() };

/** What of a proxy the EnvoyFilters of its namespace and of the root namespace ask for; the rest does not split what they patch. */
interface Needs {
  readonly labels: boolean;
  readonly version: boolean;
  readonly metadata: readonly string[];
  readonly extensions: boolean;
}

interface PlanKey {
  readonly namespace: string;
  readonly labels: Labels | undefined;
  readonly version: string | undefined;
  readonly metadata: Readonly<Record<string, string | undefined>>;
  readonly extensions: ExtensionList | undefined;
}

export interface Plans {
  /** The patches for a proxy. */
  of(view: ProxyView): PatchPlan;
  /** An EnvoyFilter as it is applied; undefined when there is none of that key. */
  readonly compiled: Query<string, CompiledFilter | undefined>;
}

/** Descriptors that patches are read with, one row `all`: an input, because they are loaded when the first EnvoyFilter comes. */
export type Descriptors = Table<Registry>;

/** Which patches apply to which proxies. */
export function definePlans(ctx: Context, descriptors: Descriptors): Plans {
  const { engine, inputs } = ctx;
  const compiled = engine.query<string, CompiledFilter | undefined>({
    name: "envoyFilter",
    same: (a, b) => a === b || (a !== undefined && b !== undefined && a.hash === b.hash),
    compute: (key) => {
      const object = inputs.objects.get(key) as ConfigObject<EnvoyFilter> | undefined;
      return object === undefined ? undefined : compileFilter(object, registryOf(descriptors));
    },
  });
  const filters = (namespace: string): readonly CompiledFilter[] =>
    inputs.objects.keys("kindNamespace", `EnvoyFilter/${namespace}`).flatMap((key) => compiled(key) ?? []);
  const relevant = (namespace: string): readonly CompiledFilter[] => {
    const root = rootOf(ctx);
    return namespace === root ? filters(root) : [...filters(root), ...filters(namespace)];
  };
  const needs = engine.query<string, Needs | undefined>({ name: "envoyFilterNeeds", compute: (namespace) => needsOf(relevant(namespace)) });
  const plan = engine.query<PlanKey, PatchPlan>({
    name: "envoyFilterPlan",
    id: ({ namespace, labels, version, metadata, extensions }) => JSON.stringify([namespace, labels, version, metadata, extensions?.id]),
    same: (a, b) => a.id === b.id,
    compute: (key) => {
      const root = rootOf(ctx);
      const selecting = inOrder(relevant(key.namespace), root).filter((filter) => selects(filter, key, root));
      return planOf(selecting, key, registryOf(descriptors));
    },
  });
  return {
    compiled,
    of: (view) => {
      const asked = view.type === "waypoint" ? undefined : needs(view.namespace);
      return asked === undefined ? NO_PLAN : plan(planKey(view, asked));
    },
  };
}

const rootOf = ({ inputs }: Context): string => inputs.mesh.get("mesh")?.rootNamespace ?? "istio-system";

function registryOf(descriptors: Descriptors): Registry {
  const registry = descriptors.get("all");
  if (registry === undefined) throw new Error("EnvoyFilters are in force, but the descriptors to read them are not loaded");
  return registry;
}

function needsOf(filters: readonly CompiledFilter[]): Needs | undefined {
  if (filters.length === 0) return undefined;
  const patches = filters.flatMap((filter) => filter.patches);
  return {
    labels: filters.some(({ selector, targets }) => selector !== undefined || targets.length > 0),
    version: patches.some(({ version }) => version !== ""),
    metadata: [...new Set(patches.flatMap(({ metadata }) => Object.keys(metadata)))].sort(),
    extensions: patches.some((patch) => patch.needs.length > 0),
  };
}

function planKey(view: ProxyView, needs: Needs): PlanKey {
  const raw = needs.metadata.length === 0 ? {} : (JSON.parse(view.metadata.raw) as Readonly<Record<string, unknown>>);
  const text = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);
  return {
    namespace: view.namespace,
    labels: needs.labels ? view.labels : undefined,
    version: needs.version ? view.istioVersion : undefined,
    metadata: Object.fromEntries(needs.metadata.map((name) => [name, text(raw[name])])),
    extensions: needs.extensions ? view.extensions : undefined,
  };
}

/** Istio's order: by priority, then those of the root namespace, then the older, then by name. */
function inOrder(filters: readonly CompiledFilter[], root: string): readonly CompiledFilter[] {
  const rank = ({ namespace }: CompiledFilter): number => (namespace === root ? 0 : 1);
  const fullName = ({ name, namespace }: CompiledFilter): string => `${name}.${namespace}`;
  return filters.toSorted(
    (a, b) => a.priority - b.priority || rank(a) - rank(b) || a.createdAt - b.createdAt || (fullName(a) < fullName(b) ? -1 : 1),
  );
}

function planOf(filters: readonly CompiledFilter[], key: PlanKey, registry: Registry): PatchPlan {
  const meant = filters.flatMap(({ patches }) => patches.filter((one) => one.patch !== undefined && isFor(one, key)));
  const missing = ({ needs }: CompiledPatch): readonly string[] => [
    ...new Set(needs.filter((need) => !hasExtension(key.extensions, need)).map(needText)),
  ];
  const patches = meant.flatMap((one) => (one.patch !== undefined && missing(one).length === 0 ? [one.patch] : []));
  const refused = meant.flatMap((one): readonly PlanFault[] => {
    const types = missing(one);
    return one.patch === undefined || types.length === 0
      ? []
      : [{ patch: one.patch.id, reason: `the proxy's Envoy has no extension ${types.join(", ")}` }];
  });
  const id = contentHash([...patches.map((one) => one.id), ...refused.map(({ patch }) => `!${patch}`)].join("\n"));
  return plans.of(id, () => ({ id, patches, refused, registry }));
}

const needText = ({ type, kind }: ExtensionNeed): string => (kind === undefined ? type : `${type} among ${kind}`);

/** Namespaces with equal plans share one, and with it everything that was patched by it. */
const plans = new Interned<PatchPlan>();

function selects(filter: CompiledFilter, { labels = {}, namespace }: PlanKey, rootNamespace: string): boolean {
  const { selector, targets } = filter;
  if (targets.length > 0) return isTargeted(targets, { policyNamespace: filter.namespace, rootNamespace, workload: { namespace, labels } });
  return selector === undefined || matchesLabels(selector, labels);
}

function isFor({ version, metadata }: CompiledPatch, key: PlanKey): boolean {
  if (version !== "" && (key.version === undefined || key.version === "" || !RE2JS.compile(version).matcher(key.version).find()))
    return false;
  return Object.entries(metadata).every(([name, value]) => key.metadata[name] === value);
}
