import type { Query } from "../../engine/index.ts";
import { type OutboundClusterName, parseOutboundClusterName } from "../../envoy/cluster/index.ts";
import type { Subset } from "../../gen/istio/networking/v1alpha3/destination_rule_pb.js";
import type { Service } from "../../model/service.ts";
import { type ClientClass, ruleFor } from "../clusters/client-class.ts";
import { type GenerateContext, type ResolvedDestinationRule, type ScopedService, type ScopeKey, scopeId } from "../context.ts";

/** What the name of a cluster stands for, to the clients of a class. */
export interface Destination {
  readonly name: string;
  readonly cluster: OutboundClusterName;
  readonly service: Service;
  readonly rule: ResolvedDestinationRule | undefined;
  readonly subset: Subset | undefined;
}

export interface Destinations {
  /** Undefined where the clients do not see the service, or it has no such port or subset. Call inside a query. */
  find(client: ClientClass, name: string): Destination | undefined;
}

/** Defines them on an engine, by scope: clients that see the same services share the answers. */
export function defineDestinations(ctx: GenerateContext): Destinations {
  const known: Query<ScopeKey, ReadonlyMap<string, ScopedService>> = ctx.engine.query({
    name: "grpc.destinations",
    id: scopeId,
    compute: (key: ScopeKey) => new Map(ctx.lookups.scope(key).services.map((service) => [service.host, service])),
  });
  return {
    find(client, name) {
      const cluster = parseOutboundClusterName(name);
      if (cluster === undefined || cluster.sni) return undefined;
      const ref = known({ namespace: client.namespace, sidecar: client.sidecar }).get(cluster.host);
      if (ref === undefined || ref.ports?.includes(cluster.port) === false) return undefined;
      const service = ctx.registry.service(ref);
      if (service?.ports.some(({ number, protocol }) => number === cluster.port && protocol !== "UDP") !== true) return undefined;
      const rule = ruleFor(ctx, client, ref);
      const subset = cluster.subset === "" ? undefined : rule?.spec.subsets.find((one) => one.name === cluster.subset);
      if (cluster.subset !== "" && subset === undefined) return undefined;
      return { name, cluster, service, rule, subset };
    },
  };
}
