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
  readonly destinationRule: Query<DestinationRuleQuery, ResolvedDestinationRule | undefined>;
  readonly hasSelectiveDestinationRules: Query<string, boolean>;
}

type Context = Pick<GenerateContext, "engine" | "inputs" | "settings">;

/** Rules of one namespace by host: the exact hosts in a map, the wildcards from the most specific to the least. */
interface HostIndex {
  readonly exact: Readonly<Record<string, readonly string[]>>;
  readonly wildcards: readonly { readonly host: string; readonly keys: readonly string[] }[];
}

/**
 * Finds the DestinationRule a client uses for a host: the client's own namespace first, then the service's, then the root namespace
 * (Istio's documentation, "Configuration Scoping").
 */
export function defineDestinationRules(ctx: Context): DestinationRuleLookups {
  const rule = (key: string): ConfigObject<DestinationRule> | undefined => ctx.inputs.objects.get(key) as ConfigObject<DestinationRule> | undefined;
  const hostOf = ctx.engine.query<string, string>({
    name: "destinationRuleHost",
    compute: (key) => {
      const object = rule(key);
      return object === undefined ? "" : resolveShortName(object.spec.host, object.namespace, ctx.settings.clusterDomain);
    },
  });
  const index = ctx.engine.query<string, HostIndex>({
    name: "destinationRuleHosts",
    compute: (namespace) => indexOf(ctx.inputs.objects.keys("kindNamespace", `DestinationRule/${namespace}`), hostOf),
  });
  const candidates = (namespace: string, host: string): readonly ConfigObject<DestinationRule>[] =>
    mostSpecific(index(namespace), host)
      .map(rule)
      .filter((object) => object !== undefined);
  const visible = (objects: readonly ConfigObject<DestinationRule>[], viewer: string): readonly ConfigObject<DestinationRule>[] => {
    const fallback = ctx.inputs.mesh.get("mesh")?.defaultDestinationRuleExportTo ?? [];
    return objects.filter(({ spec, namespace }) => isExported(spec.exportTo, fallback, { owner: namespace, viewer }));
  };
  return {
    destinationRule: ctx.engine.query<DestinationRuleQuery, ResolvedDestinationRule | undefined>({
      name: "destinationRule",
      id: ({ host, clientNamespace, serviceNamespace, labels }) => `${host}|${clientNamespace}|${serviceNamespace}|${labels === undefined ? "" : JSON.stringify(labels)}`,
      compute: ({ host, clientNamespace, serviceNamespace, labels }) => {
        const root = ctx.inputs.mesh.get("mesh")?.rootNamespace ?? "istio-system";
        const own = clientNamespace === root ? [] : selectFor(candidates(clientNamespace, host), labels);
        if (own.length > 0) return merge(own, host);
        const shared = serviceNamespace === clientNamespace ? [] : selectFor(visible(candidates(serviceNamespace, host), clientNamespace), undefined);
        if (shared.length > 0) return merge(shared, host);
        const mesh = selectFor(visible(candidates(root, host), clientNamespace), clientNamespace === root ? labels : undefined);
        return mesh.length > 0 ? merge(mesh, host) : undefined;
      },
    }),
    hasSelectiveDestinationRules: ctx.engine.query<string, boolean>({
      name: "hasSelectiveDestinationRules",
      compute: (namespace) => ctx.inputs.objects.keys("kindNamespace", `DestinationRule/${namespace}`).some((key) => rule(key)?.spec.workloadSelector !== undefined),
    }),
  };
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
function selectFor(objects: readonly ConfigObject<DestinationRule>[], labels: Readonly<Record<string, string>> | undefined): readonly ConfigObject<DestinationRule>[] {
  const sorted = objects.toSorted(byPrecedence);
  const selecting = labels === undefined ? [] : sorted.filter(({ spec }) => spec.workloadSelector !== undefined && matchesLabels(spec.workloadSelector.matchLabels, labels));
  return selecting.length > 0 ? selecting : sorted.filter(({ spec }) => spec.workloadSelector === undefined);
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
