import { matchesHost, mostSpecificMatch } from "../../base/hostname.ts";
import { NO_LABELS } from "../../base/labels.ts";
import type { Query } from "../../engine/index.ts";
import type { OutboundClusterName } from "../../envoy/cluster/index.ts";
import type { MeshConfig } from "../../gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import { ClientTLSSettings_TLSmode as TlsMode } from "../../gen/istio/networking/v1alpha3/destination_rule_pb.js";
import { hostKey, refOf, type Service, type ServiceRef, serviceKey } from "../../model/service.ts";
import { drainsSessions } from "../../model/session.ts";
import { type PortPolicy, portPolicy } from "../clusters/traffic-policy.ts";
import type { GenerateContext, ResolvedDestinationRule } from "../context.ts";
import type { AssignmentPlan } from "./assignment-key.ts";
import { defineNetworkGateways, type NetworkGatewayQueries } from "./gateway-services.ts";
import { localityRulesOf } from "./locality-rules.ts";

/** The few things of a service that shape its assignments; a service that changes otherwise re-runs nothing that reads these. */
export interface ServiceTraits {
  readonly ports: readonly number[];
  /** Its clusters carry their endpoints inside, by name. */
  readonly inline: boolean;
  readonly nodeLocal: boolean;
  /** It has sessions that endpoints on their way out must still serve. */
  readonly draining: boolean;
  readonly distribution: Service["trafficDistribution"];
}

export interface PlanQuery {
  readonly name: string;
  readonly cluster: OutboundClusterName;
  /** The cluster forwards by SNI (east-west gateway): only endpoints that take mutual TLS make sense there. */
  readonly sni: boolean;
  readonly service: ServiceRef;
  readonly rule: ResolvedDestinationRule | undefined;
  /** Traits of the service, for callers that plan for many and have them at hand; else they are looked up. */
  readonly traits?: ServiceTraits | undefined;
}

export interface AssignmentPlanning extends NetworkGatewayQueries {
  /** Traits of the services of a namespace by `hostKey`. Who plans for all services reads these: one recorded read a namespace instead of one a service. */
  readonly traitsIn: Query<string, ReadonlyMap<string, ServiceTraits>>;
  /** Whether some network can only be reached through gateways. */
  readonly networked: Query<"", boolean>;
  /** Plans the assignment of a cluster; undefined where the service, its port or the subset does not exist. Call inside a query. */
  plan(query: PlanQuery): AssignmentPlan | undefined;
  /** The same for who plans many: looks at the mesh once. Not to be kept beyond the run of the query it is made in. */
  planner(): (query: PlanQuery) => AssignmentPlan | undefined;
}

export function defineAssignmentPlanning(ctx: GenerateContext): AssignmentPlanning {
  const traits = ctx.engine.query<ServiceRef, ServiceTraits | undefined>({
    name: "endpoints.serviceTraits",
    id: serviceKey,
    compute: (ref) => {
      const service = ctx.registry.service(ref);
      if (service === undefined) return undefined;
      return {
        ports: service.ports.map(({ number }) => number),
        inline: service.resolution === "dns" || service.resolution === "dnsRoundRobin",
        nodeLocal: service.nodeLocal,
        draining: drainsSessions(service, ctx.settings.sessions),
        distribution: service.trafficDistribution,
      };
    },
  });
  const traitsIn = ctx.engine.query<string, ReadonlyMap<string, ServiceTraits>>({
    name: "endpoints.traitsIn",
    compute: (namespace) =>
      new Map(
        ctx.registry.servicesIn(namespace).flatMap((ref): readonly [string, ServiceTraits][] => {
          const known = traits(ref);
          return known === undefined ? [] : [[hostKey(ref), known]];
        }),
      ),
  });
  const clusterLocal = ctx.engine.query<"", ReadonlyMap<string, boolean>>({
    name: "endpoints.clusterLocalHosts",
    compute: () => clusterLocalHosts(ctx),
  });
  const gateways = defineNetworkGateways(ctx);
  const networked = ctx.engine.query<"", boolean>({ name: "endpoints.networked", compute: () => gateways.namedGateways("").size > 0 });
  const planner = (): ((query: PlanQuery) => AssignmentPlan | undefined) => {
    const site = { mesh: ctx.inputs.mesh.get("mesh"), clusterLocal: clusterLocal("") };
    return (query) => {
      const known = query.traits ?? traits(query.service);
      return known === undefined ? undefined : planned({ ...query, traits: known }, site);
    };
  };
  return { traitsIn, ...gateways, networked, planner, plan: (query) => planner()(query) };
}

interface PlanSite {
  readonly mesh: MeshConfig | undefined;
  readonly clusterLocal: ReadonlyMap<string, boolean>;
}

function planned(query: PlanQuery & { readonly traits: ServiceTraits }, { mesh, clusterLocal }: PlanSite): AssignmentPlan | undefined {
  const { name, cluster, sni, service, rule, traits } = query;
  const subset = rule?.spec.subsets.find((candidate) => candidate.name === cluster.subset);
  if (!traits.ports.includes(cluster.port) || (cluster.subset !== "" && subset === undefined)) return undefined;
  const policy = withMeshDefaults(mesh, portPolicy(rule?.spec, cluster.port, subset));
  return {
    cluster: name,
    service: refOf(service),
    port: cluster.port,
    labels: subset?.labels ?? NO_LABELS,
    mutualTls: sni ? (mutualTlsOf(policy) === "hide" ? "none" : "only") : mutualTlsOf(policy),
    unhealthy: traits.distribution !== "any" || (policy.outlierDetection?.minHealthPercent ?? 0) <= 0,
    draining: traits.draining,
    clusterLocal: isClusterLocal(clusterLocal, cluster.host),
    nodeLocal: traits.nodeLocal,
    locality: localityRulesOf({
      loadBalancer: policy.loadBalancer,
      outlier: policy.outlierDetection,
      mesh,
      distribution: traits.distribution,
    }),
  };
}

/** Blocks that no DestinationRule gives come from the mesh's default traffic policy. */
export function withMeshDefaults(mesh: MeshConfig | undefined, policy: PortPolicy): PortPolicy {
  const defaults = mesh?.defaultTrafficPolicy;
  if (defaults === undefined) return policy;
  return {
    ...policy,
    connectionPool: policy.connectionPool ?? defaults.connectionPool,
    outlierDetection: policy.outlierDetection ?? defaults.outlierDetection,
  };
}

function mutualTlsOf({ tls }: PortPolicy): AssignmentPlan["mutualTls"] {
  if (tls === undefined) return "offer";
  return tls.mode === TlsMode.ISTIO_MUTUAL ? "demand" : "hide";
}

/** Hosts whose clients stay in their own cluster, and those who do not: what the mesh says, and what is one thing per cluster by nature. */
function clusterLocalHosts({ inputs, settings: { clusterDomain } }: GenerateContext): ReadonlyMap<string, boolean> {
  const mesh = inputs.mesh.get("mesh");
  const said = new Map(
    (mesh?.serviceSettings ?? []).flatMap(({ hosts, settings }) => hosts.map((host) => [host, settings?.clusterLocal === true] as const)),
  );
  const control = mesh?.defaultConfig?.discoveryAddress.replace(/:\d+$/, "") ?? "";
  const byNature = [
    `*.kube-system.svc.${clusterDomain}`,
    `kubernetes.default.svc.${clusterDomain}`,
    ...(control === "" ? [] : [control.endsWith(clusterDomain) ? control : `${control}.${clusterDomain}`]),
  ];
  // What the mesh says of a host of such a pattern takes the whole pattern back, as in Istio.
  const kept = byNature.filter((pattern) => ![...said].some(([host, local]) => !local && (host === pattern || matchesHost(pattern, host))));
  return new Map([...said, ...kept.filter((pattern) => !said.has(pattern)).map((pattern) => [pattern, true] as const)]);
}

/** The most specific of the patterns counts: the name itself before any wildcard. */
function isClusterLocal(hosts: ReadonlyMap<string, boolean>, host: string): boolean {
  const exact = hosts.get(host);
  if (exact !== undefined) return exact;
  const pattern = mostSpecificMatch(host, hosts.keys());
  return pattern !== undefined && hosts.get(pattern) === true;
}
