import { clone, create } from "@bufbuild/protobuf";
import { matchesHost, resolveShortName } from "../../base/hostname.ts";
import { matchesLabels } from "../../base/labels.ts";
import { type ConfigObject, objectKey } from "../../config/object.ts";
import type { Query } from "../../engine/index.ts";
import { type DestinationRule, DestinationRuleSchema } from "../../gen/istio/networking/v1alpha3/destination_rule_pb.js";
import type { DestinationRuleQuery, GenerateContext, ResolvedDestinationRule } from "../context.ts";
import { isExported } from "./export-to.ts";
import { byPrecedence, compareText } from "./precedence.ts";

export interface DestinationRuleLookups {
  readonly destinationRule: (query: DestinationRuleQuery) => ResolvedDestinationRule | undefined;
  readonly destinationRuleKeys: (query: DestinationRuleQuery) => readonly string[];
  readonly hasSelectiveDestinationRules: Query<string, boolean>;
}

type Context = Pick<GenerateContext, "engine" | "inputs" | "settings">;

/** Rules of one namespace by host: the exact hosts in a map, the wildcards from the most specific to the least. */
interface HostIndex {
  readonly exact: Readonly<Record<string, readonly string[]>>;
  readonly wildcards: readonly { readonly host: string; readonly keys: readonly string[] }[];
}

/** What choosing a rule depends on; its policies are read only once it is chosen. */
interface RuleTraits {
  readonly key: string;
  readonly name: string;
  readonly namespace: string;
  readonly createdAt: number;
  readonly host: string;
  readonly exportTo: readonly string[];
  readonly selector: Readonly<Record<string, string>> | undefined;
}

/**
 * Finds the DestinationRule a client uses for a host: the client's own namespace first, then the service's, then the root namespace
 * (Istio's documentation, "Configuration Scoping"). Choosing costs a few look-ups and keeps nothing, since every client namespace
 * asks for every host; what is kept is the merged rule, which most clients share.
 */
export function defineDestinationRules(ctx: Context): DestinationRuleLookups {
  const traits = ctx.engine.query<string, RuleTraits | undefined>({ name: "destinationRuleTraits", compute: (key) => traitsOf(ctx, key) });
  const index = ctx.engine.query<string, HostIndex>({
    name: "destinationRuleHosts",
    compute: (namespace) =>
      indexOf(ctx.inputs.objects.keys("kindNamespace", `DestinationRule/${namespace}`), (key) => traits(key)?.host ?? ""),
  });
  const merged = defineMerged(ctx);
  const candidates = (namespace: string, host: string): readonly RuleTraits[] =>
    mostSpecific(index(namespace), host)
      .map((key) => traits(key))
      .filter((rule) => rule !== undefined);
  const visible = (rules: readonly RuleTraits[], viewer: string): readonly RuleTraits[] => {
    if (rules.length === 0) return rules;
    const fallback = ctx.inputs.mesh.get("mesh")?.defaultDestinationRuleExportTo ?? [];
    return rules.filter(({ exportTo, namespace }) => isExported(exportTo, fallback, { owner: namespace, viewer }));
  };
  const choose = ({ host, clientNamespace, serviceNamespace, labels }: DestinationRuleQuery): readonly RuleTraits[] => {
    const root = ctx.inputs.mesh.get("mesh")?.rootNamespace ?? "istio-system";
    const own = clientNamespace === root ? [] : selectFor(candidates(clientNamespace, host), labels);
    if (own.length > 0) return own;
    const shared =
      serviceNamespace === clientNamespace ? [] : selectFor(visible(candidates(serviceNamespace, host), clientNamespace), undefined);
    if (shared.length > 0) return shared;
    return selectFor(visible(candidates(root, host), clientNamespace), clientNamespace === root ? labels : undefined);
  };
  const keysOf = (query: DestinationRuleQuery): readonly string[] => choose(query).map(({ key }) => key);
  return {
    destinationRuleKeys: keysOf,
    destinationRule: (query) => {
      const keys = keysOf(query);
      return keys.length === 0 ? undefined : merged({ keys, host: query.host });
    },
    hasSelectiveDestinationRules: ctx.engine.query<string, boolean>({
      name: "hasSelectiveDestinationRules",
      compute: (namespace) =>
        ctx.inputs.objects.keys("kindNamespace", `DestinationRule/${namespace}`).some((key) => traits(key)?.selector !== undefined),
    }),
  };
}

const ruleAt = (ctx: Context, key: string): ConfigObject<DestinationRule> | undefined =>
  ctx.inputs.objects.get(key) as ConfigObject<DestinationRule> | undefined;

function traitsOf(ctx: Context, key: string): RuleTraits | undefined {
  const object = ruleAt(ctx, key);
  if (object === undefined) return undefined;
  const { name, namespace, createdAt, spec } = object;
  return {
    key,
    name,
    namespace,
    createdAt,
    host: resolveShortName(spec.host, namespace, ctx.settings.clusterDomain),
    exportTo: spec.exportTo,
    selector: spec.workloadSelector?.matchLabels,
  };
}

function defineMerged(
  ctx: Context,
): Query<{ readonly keys: readonly string[]; readonly host: string }, ResolvedDestinationRule | undefined> {
  return ctx.engine.query<{ readonly keys: readonly string[]; readonly host: string }, ResolvedDestinationRule | undefined>({
    name: "destinationRule",
    id: ({ keys, host }) => (keys.length === 1 ? `${keys[0]}` : `${host}|${keys.join()}`),
    compute: ({ keys, host }) =>
      merge(
        keys.map((key) => ruleAt(ctx, key)).filter((object) => object !== undefined),
        host,
      ),
  });
}

function indexOf(keys: readonly string[], hostOf: (key: string) => string): HostIndex {
  const byHost = Map.groupBy(keys, hostOf);
  const hosts = [...byHost.keys()].sort((a, b) => b.length - a.length || compareText(a, b));
  const wildcards = hosts.filter((host) => host.startsWith("*"));
  return {
    exact: Object.fromEntries(hosts.filter((host) => !host.startsWith("*")).map((host) => [host, byHost.get(host) ?? []])),
    wildcards: wildcards.map((host) => ({ host, keys: byHost.get(host) ?? [] })),
  };
}

function mostSpecific(index: HostIndex, host: string): readonly string[] {
  const exact = index.exact[host];
  if (exact !== undefined) return exact;
  return index.wildcards.find((entry) => entry.host === host || matchesHost(entry.host, host))?.keys ?? [];
}

/** A rule with a workloadSelector goes before one without, for the workloads it selects; for all others it does not exist. */
function selectFor(rules: readonly RuleTraits[], labels: Readonly<Record<string, string>> | undefined): readonly RuleTraits[] {
  if (rules.length === 0) return rules;
  const sorted = rules.toSorted(byPrecedence);
  const selecting = labels === undefined ? [] : sorted.filter(({ selector }) => selector !== undefined && matchesLabels(selector, labels));
  return selecting.length > 0 ? selecting : sorted.filter(({ selector }) => selector === undefined);
}

/** Several rules for one host add up: subsets are collected (the first of a name stands), the first traffic policy stands. */
function merge(objects: readonly ConfigObject<DestinationRule>[], host: string): ResolvedDestinationRule | undefined {
  const [first, ...others] = objects;
  if (first === undefined) return undefined;
  const keys = objects.map(objectKey);
  if (others.length === 0) return { keys, namespace: first.namespace, spec: first.spec };
  const spec = create(DestinationRuleSchema, { ...clone(DestinationRuleSchema, first.spec), host });
  for (const { spec: other } of others) {
    if (spec.trafficPolicy === undefined && other.trafficPolicy !== undefined) spec.trafficPolicy = other.trafficPolicy;
    spec.subsets.push(...other.subsets.filter(({ name }) => !spec.subsets.some((subset) => subset.name === name)));
  }
  return { keys, namespace: first.namespace, spec };
}
