import type { Query } from "../../engine/index.ts";
import { refOf, type ServiceRef } from "../../model/service.ts";
import type { GenerateContext } from "../context.ts";
import { compareText } from "./precedence.ts";

type Context = Pick<GenerateContext, "engine" | "registry">;

/** Names of Kubernetes ExternalName Services and what they stand for. */
export interface ServiceAliases {
  /** The host a name leads to in the end; undefined where it is no alias, or one that leads back to itself. */
  readonly targetOf: (host: string) => string | undefined;
  /** The aliases of a host, sorted. */
  readonly of: (host: string) => readonly ServiceRef[];
  /** Those that lead back to themselves, sorted. */
  readonly circular: () => readonly ServiceRef[];
}

interface Alias extends ServiceRef {
  readonly target: string;
}

interface AliasMap {
  readonly targets: ReadonlyMap<string, string>;
  readonly byTarget: ReadonlyMap<string, readonly ServiceRef[]>;
  readonly circular: readonly ServiceRef[];
}

/** Defines the aliases of a mesh: most have none, and services that change otherwise re-run their namespace's list only. */
export function defineServiceAliases(ctx: Context): ServiceAliases {
  const inNamespace = ctx.engine.query<string, readonly Alias[]>({
    name: "aliasesIn",
    compute: (namespace) =>
      ctx.registry.servicesIn(namespace).flatMap((ref) => {
        const target = ctx.registry.service(ref)?.externalName;
        return target === undefined ? [] : [{ ...refOf(ref), target }];
      }),
  });
  const all: Query<"", AliasMap> = ctx.engine.query<"", AliasMap>({
    name: "serviceAliases",
    compute: () => aliasMap(ctx.registry.namespaces().flatMap((namespace) => inNamespace(namespace))),
  });
  return {
    targetOf: (host) => all("").targets.get(host),
    of: (host) => all("").byTarget.get(host) ?? [],
    circular: () => all("").circular,
  };
}

function aliasMap(aliases: readonly Alias[]): AliasMap {
  const direct = new Map(aliases.map(({ host, target }) => [host, target]));
  const targets = new Map<string, string>();
  for (const { host } of aliases) {
    const target = lastOf(direct, host);
    if (target !== undefined) targets.set(host, target);
  }
  const sorted = aliases.toSorted((a, b) => compareText(a.host, b.host));
  const reachable = sorted.filter(({ host }) => targets.has(host));
  const byTarget = Map.groupBy(reachable, ({ host }) => targets.get(host) ?? "");
  return {
    targets,
    byTarget: new Map([...byTarget].map(([target, list]) => [target, list.map(refOf)])),
    circular: sorted.filter(({ host }) => !targets.has(host)).map(refOf),
  };
}

/** Follows a name through other aliases. A circle resolves to nothing, as it does in DNS. */
function lastOf(direct: ReadonlyMap<string, string>, host: string): string | undefined {
  const seen = new Set([host]);
  for (let at = direct.get(host); at !== undefined; at = direct.get(at)) {
    if (!direct.has(at)) return at;
    if (seen.has(at)) return undefined;
    seen.add(at);
  }
  return undefined;
}
