import { isWildcardHost, matchesHost, resolveShortName } from "../../base/hostname.ts";
import type { ConfigObject } from "../../config/object.ts";
import type { DestinationRule } from "../../gen/istio/networking/v1alpha3/destination_rule_pb.js";
import type { GenerateContext } from "../context.ts";

type Context = Pick<GenerateContext, "engine" | "inputs" | "registry" | "lookups" | "settings">;

/** What objects may refer to. Each answer is a query of its own: who refers to something is judged again when that comes or goes, and only then. */
export interface KnownNames {
  /** Ports of the services that have a host, in any namespace; undefined where no service has it. A wildcard host takes what it matches. */
  readonly portsOf: (host: string) => readonly number[] | undefined;
  /** Names of the subsets that DestinationRules give a host, in any namespace. */
  readonly subsetsOf: (host: string) => readonly string[];
  readonly hasGateway: (key: string) => boolean;
}

/** Defines them on an engine. */
export function defineKnownNames(ctx: Context): KnownNames {
  const { engine, inputs, registry, settings } = ctx;
  const wildcards = engine.query<"", readonly string[]>({
    name: "problems.wildcardHosts",
    compute: () =>
      registry.namespaces().flatMap((namespace) =>
        registry
          .servicesIn(namespace)
          .map(({ host }) => host)
          .filter(isWildcardHost),
      ),
  });
  const portsOf = engine.query<string, readonly number[] | undefined>({
    name: "problems.portsOf",
    compute: (named) => {
      const host = ctx.lookups.aliases.targetOf(named) ?? named;
      const exact = registry.servicesByHost(host);
      const hosts = exact.length > 0 ? [host] : wildcards("").filter((pattern) => matchesHost(pattern, host));
      if (hosts.length === 0) return undefined;
      const ports = hosts.flatMap((one) => registry.servicesByHost(one).flatMap((ref) => registry.service(ref)?.ports ?? []));
      return [...new Set(ports.map(({ number }) => number))].sort((a, b) => a - b);
    },
  });
  const subsets = engine.query<"", ReadonlyMap<string, readonly string[]>>({
    name: "problems.subsets",
    compute: () => {
      const found = new Map<string, string[]>();
      for (const { spec, namespace } of inputs.objects.list("kind", "DestinationRule") as readonly ConfigObject<DestinationRule>[]) {
        const host = resolveShortName(spec.host, namespace, settings.clusterDomain);
        found.set(host, [...(found.get(host) ?? []), ...spec.subsets.map(({ name }) => name)]);
      }
      return found;
    },
  });
  const wildcardRules = engine.query<"", readonly string[]>({
    name: "problems.wildcardRules",
    compute: () => [...subsets("").keys()].filter(isWildcardHost),
  });
  const subsetsOf = engine.query<string, readonly string[]>({
    name: "problems.subsetsOf",
    compute: (host) => {
      const patterns = [host, ...wildcardRules("").filter((pattern) => pattern !== host && matchesHost(pattern, host))];
      return patterns.flatMap((pattern) => subsets("").get(pattern) ?? []).sort();
    },
  });
  return { portsOf, subsetsOf, hasGateway: (key) => inputs.objects.has(`Gateway/${key}`) };
}
