import { clone, create } from "@bufbuild/protobuf";
import { matchesHost, resolveShortName } from "../../base/hostname.ts";
import { type Labels, labelPairs, matchesLabels } from "../../base/labels.ts";
import { type ConfigObject, objectKey } from "../../config/object.ts";
import type { Query } from "../../engine/index.ts";
import { type DestinationRule, DestinationRuleSchema } from "../../gen/istio/networking/v1alpha3/destination_rule_pb.js";
import type { ServiceRef } from "../../model/service.ts";
import type { DestinationRuleQuery, GenerateContext, ResolvedDestinationRule } from "../context.ts";
import { remembered } from "../remembered.ts";
import { byPrecedence, compareText } from "./precedence.ts";

export interface DestinationRuleLookups {
  readonly destinationRule: (query: DestinationRuleQuery) => ResolvedDestinationRule | undefined;
  readonly mergedDestinationRule: (keys: readonly string[], host: string) => ResolvedDestinationRule | undefined;
  readonly destinationRuleKeys: (query: DestinationRuleQuery) => readonly string[];
  readonly destinationRuleChooser: (client: RuleClient) => (service: Pick<ServiceRef, "host" | "namespace">) => readonly string[];
  readonly hasSelectiveDestinationRules: Query<string, boolean>;
  /** The work behind choosing rules of namespaces in small steps. */
  readonly steps: (namespaces: readonly string[]) => Iterable<void>;
}

type Context = Pick<GenerateContext, "engine" | "inputs" | "settings">;

/** Who asks for rules. */
type RuleClient = Pick<DestinationRuleQuery, "clientNamespace" | "labels">;

/** Rules of one host that count as one: they say the same of who may use them. The oldest comes first. */
interface RuleGroup {
  readonly keys: readonly string[];
  readonly exportTo: readonly string[];
  readonly selector: Labels | undefined;
}

/** Rules by host: the exact hosts in a map, the wildcards from the most specific to the least. */
interface HostIndex {
  readonly exact: Readonly<Record<string, readonly RuleGroup[]>>;
  readonly wildcards: readonly { readonly host: string; readonly groups: readonly RuleGroup[] }[];
}

const NO_GROUPS: readonly RuleGroup[] = [];
const NO_KEYS: readonly string[] = [];

/** What one namespace has for its own workloads, and what it lets others see. */
interface NamespaceRules {
  readonly own: HostIndex;
  readonly exported: HostIndex;
}

/** What choosing a rule depends on; its policies are read only once it is chosen. */
interface RuleTraits {
  readonly key: string;
  readonly name: string;
  readonly namespace: string;
  readonly createdAt: number;
  readonly host: string;
  readonly exportTo: readonly string[];
  readonly selector: Labels | undefined;
}

/**
 * Finds the DestinationRule a client uses for a host: the client's own namespace first, then the service's, then the root namespace
 * (Istio's documentation, "Configuration Scoping"). The first that has a rule for the host decides, even where none of its rules selects
 * the client. Choosing costs a few look-ups and keeps nothing, since every client namespace asks for every host; what is kept is the
 * merged rule, which most clients share.
 */
export function defineDestinationRules(ctx: Context): DestinationRuleLookups {
  const traits = ctx.engine.query<string, RuleTraits | undefined>({ name: "destinationRuleTraits", compute: (key) => traitsOf(ctx, key) });
  const traitsIn = (namespace: string): readonly RuleTraits[] =>
    ctx.inputs.objects.keys("kindNamespace", `DestinationRule/${namespace}`).flatMap((key) => traits(key) ?? []);
  const rulesIn = ctx.engine.query<string, NamespaceRules>({
    name: "destinationRuleHosts",
    compute: (namespace) => {
      const mesh = ctx.inputs.mesh.get("mesh");
      const privateByDefault = mesh?.defaultDestinationRuleExportTo.includes(".") === true;
      const root = namespace === (mesh?.rootNamespace ?? "istio-system");
      const rules = traitsIn(namespace);
      const isPrivate = (rule: RuleTraits): boolean => isPrivateRule(rule, privateByDefault);
      // What the root namespace exports is for everybody; for its own workloads it must not hide the rules of the service's namespace.
      const own = rules.filter((rule) => isOwnRule(rule) && (!root || isPrivate(rule)));
      return { own: indexOf(own), exported: indexOf(rules.filter((rule) => !isPrivate(rule))) };
    },
  });
  const merged = defineMerged(ctx);
  const rootNamespace = (): string => ctx.inputs.mesh.get("mesh")?.rootNamespace ?? "istio-system";
  const keysOf = (query: DestinationRuleQuery): readonly string[] =>
    chooserFor(query, { rulesIn, root: rootNamespace() })({ host: query.host, namespace: query.serviceNamespace });
  return {
    *steps(namespaces) {
      for (const namespace of namespaces) {
        rulesIn.try(namespace);
        yield;
      }
    },
    destinationRuleKeys: keysOf,
    destinationRuleChooser: (client) => chooserFor(client, { rulesIn: remembered(rulesIn), root: rootNamespace() }),
    mergedDestinationRule: (keys, host) => merged({ keys, host }),
    destinationRule: (query) => {
      const keys = keysOf(query);
      return keys.length === 0 ? undefined : merged({ keys, host: query.host });
    },
    hasSelectiveDestinationRules: ctx.engine.query<string, boolean>({
      name: "hasSelectiveDestinationRules",
      compute: (namespace) => traitsIn(namespace).some(({ selector }) => selector !== undefined),
    }),
  };
}

/** Where rules are looked for. */
interface RulePlaces {
  readonly rulesIn: (namespace: string) => NamespaceRules;
  readonly root: string;
}

/** Chooses the rules of services, as one client sees them. */
function chooserFor(
  { clientNamespace, labels }: RuleClient,
  { rulesIn, root }: RulePlaces,
): ReturnType<DestinationRuleLookups["destinationRuleChooser"]> {
  const { own } = rulesIn(clientNamespace);
  const exportedBy = (namespace: string, host: string): readonly RuleGroup[] => {
    const groups = mostSpecific(rulesIn(namespace).exported, host);
    const isSeen = ({ exportTo }: RuleGroup): boolean => isVisible(exportTo, clientNamespace);
    return groups.every(isSeen) ? groups : groups.filter(isSeen);
  };
  return ({ host, namespace }) => {
    const mine = mostSpecific(own, host);
    if (mine.length > 0) return selectFor(mine, labels);
    const ofService = exportedBy(namespace, host);
    return selectFor(ofService.length > 0 ? ofService : exportedBy(root, host), undefined);
  };
}

/** Whether workloads of the rule's own namespace may use it. One that selects workloads is for those alone, whatever it exports. */
const isOwnRule = ({ exportTo, namespace, selector }: RuleTraits): boolean =>
  selector !== undefined || exportTo.length === 0 || exportTo.some((entry) => entry === "*" || entry === "." || entry === namespace);

/** Whether nobody else may. */
function isPrivateRule({ exportTo, namespace, selector }: RuleTraits, byDefault: boolean): boolean {
  if (selector !== undefined) return true;
  return exportTo.length === 0 ? byDefault : exportTo.every((entry) => entry === "." || entry === namespace);
}

const isVisible = (exportTo: readonly string[], viewer: string): boolean =>
  exportTo.length === 0 || exportTo.includes("*") || exportTo.includes(viewer);

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

function indexOf(rules: readonly RuleTraits[]): HostIndex {
  const byHost = Map.groupBy(rules.toSorted(byPrecedence), ({ host }) => host);
  const hosts = [...byHost.keys()].sort((a, b) => b.length - a.length || compareText(a, b));
  const groupsOf = (host: string): readonly RuleGroup[] => grouped(byHost.get(host) ?? []);
  const wildcards = hosts.filter((host) => host.startsWith("*"));
  return {
    exact: Object.fromEntries(hosts.filter((host) => !host.startsWith("*")).map((host) => [host, groupsOf(host)])),
    wildcards: wildcards.map((host) => ({ host, groups: groupsOf(host) })),
  };
}

/**
 * Rules that are exported alike and select alike are merged; the others stand side by side. One that selects workloads is completed by
 * those that say they are for the namespace, as in Istio.
 */
function grouped(rules: readonly RuleTraits[]): readonly RuleGroup[] {
  const audience = ({ exportTo, selector }: RuleTraits): string =>
    selector === undefined ? exportTo.toSorted().join() : `select:${labelPairs(selector).join()}`;
  const ofNamespace = rules.filter(({ exportTo, selector }) => selector === undefined && exportTo.includes("."));
  return [...Map.groupBy(rules, audience).values()].flatMap((group) => {
    const [first] = group;
    if (first === undefined) return [];
    const members = first.selector === undefined ? group : [...group, ...ofNamespace];
    return [{ keys: members.map(({ key }) => key), exportTo: first.exportTo, selector: first.selector }];
  });
}

function mostSpecific(index: HostIndex, host: string): readonly RuleGroup[] {
  const exact = index.exact[host];
  if (exact !== undefined) return exact;
  if (index.wildcards.length === 0) return NO_GROUPS;
  return index.wildcards.find((entry) => entry.host === host || matchesHost(entry.host, host))?.groups ?? NO_GROUPS;
}

/** The rules for a workload: the oldest that select it, else the youngest of those that select nothing, which is Istio's choice. */
function selectFor(groups: readonly RuleGroup[], labels: Labels | undefined): readonly string[] {
  if (groups.length === 0) return NO_KEYS;
  const selecting =
    labels === undefined ? undefined : groups.find(({ selector }) => selector !== undefined && matchesLabels(selector, labels));
  return (selecting ?? groups.findLast(({ selector }) => selector === undefined))?.keys ?? NO_KEYS;
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
