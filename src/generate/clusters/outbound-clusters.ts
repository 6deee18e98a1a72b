import { create } from "@bufbuild/protobuf";
import { msOfDuration } from "../../base/duration.ts";
import {
  type ClusterInput,
  type ClusterMetadataInput,
  type OutboundClusterName,
  outboundClusterName,
  sniClusterName,
} from "../../envoy/cluster/index.ts";
import type { LoadAssignmentInput } from "../../envoy/endpoint/load-assignment.ts";
import { type MeshConfig, MeshConfigSchema } from "../../gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import type { Subset } from "../../gen/istio/networking/v1alpha3/destination_rule_pb.js";
import { isHttp, isHttp2 } from "../../model/protocol.ts";
import type { Service, ServicePort } from "../../model/service.ts";
import type { GenerateContext } from "../context.ts";
import { byName, namesHost, serviceDnsCache } from "../dynamic-dns.ts";
import { assignmentKey, type LocalityRules } from "../endpoints/assignment-key.ts";
import { withMeshDefaults } from "../endpoints/assignment-plan.ts";
import { type Assignments, assignmentsOf } from "../endpoints/assignments.ts";
import { algorithmOf, isPassthrough, outlierOf, redisAlgorithm } from "./balancing-settings.ts";
import { type ClientTls, clientTls, PLAIN } from "./client-tls.ts";
import type { ClientTraits, OutboundKey } from "./outbound-key.ts";
import { connectTimeoutOf, httpOptionsOf, httpVersionOf, keepaliveOf, limitsOf } from "./pool-settings.ts";
import { statName } from "./stat-name.ts";
import { type PortPolicy, portPolicy, servicePolicy } from "./traffic-policy.ts";

/** Default mesh settings, for a mesh that has none. */
export const meshOf = ({ inputs }: Pick<GenerateContext, "inputs">): MeshConfig => inputs.mesh.get("mesh") ?? create(MeshConfigSchema);

interface Target {
  readonly key: OutboundKey;
  readonly service: Service;
  readonly port: ServicePort;
  readonly subset: Subset | undefined;
  readonly sni: boolean;
}

/** The outbound clusters of one service: one per port, and one more per port and subset. Call inside a query. */
export function outboundClusters(ctx: GenerateContext, key: OutboundKey): readonly ClusterInput[] {
  const service = ctx.registry.service(key.service);
  if (service === undefined || service.resolution === "alias") return [];
  const ports = service.ports.filter(
    ({ number, protocol }) => protocol !== "UDP" && (key.ports === undefined || key.ports.includes(number)),
  );
  if (service.resolution === "dynamicDns") {
    const targets = ports
      .filter(({ protocol }) => namesHost(protocol))
      .map((port): Target => ({ key, service, port, subset: undefined, sni: false }));
    return targets.map((target) => namedCluster(ctx, target));
  }
  const subsets = [undefined, ...(key.rule?.spec.subsets ?? [])];
  const forms = key.traits.sni && !service.meshExternal ? [false, true] : [false];
  const assignments = assignmentsOf(ctx);
  const site: Site = { ctx, mesh: meshOf(ctx), assignments, plan: assignments.planner() };
  const targets = forms.flatMap((sni) => ports.flatMap((port) => subsets.map((subset): Target => ({ key, service, port, subset, sni }))));
  return targets.flatMap((target) => outboundCluster(site, target) ?? []);
}

/** What all clusters of a service are made with. */
interface Site {
  readonly ctx: GenerateContext;
  readonly mesh: MeshConfig;
  readonly assignments: Assignments;
  readonly plan: Assignments["plan"];
}

function outboundCluster({ ctx, mesh, assignments, plan: planned }: Site, target: Target): ClusterInput | undefined {
  const { key, service, port, subset, sni } = target;
  const cluster: OutboundClusterName = { port: port.number, subset: subset?.name ?? "", host: service.host };
  const name = sni ? sniClusterName(cluster) : outboundClusterName(cluster);
  const plan = planned({ name, cluster, sni, service: key.service, rule: key.rule });
  if (plan === undefined) return undefined;
  const inline = isInline(service) ? assignments.select(assignmentKey(plan, key.place), { resolved: false }) : undefined;
  const policy = withMeshDefaults(mesh, servicePolicy(service, portPolicy(key.rule?.spec, port.number, subset)));
  const discovery = discoveryOf({ service, policy, traits: key.traits, inline, ctx });
  // Who keeps the address that a client chose needs no endpoints.
  if (inline?.localities.length === 0 && discovery !== "originalDst") return undefined;
  const sniff = !key.traits.router && ctx.settings.sniffOutbound;
  const preserveHeaderCase = keepsSpelling(target);
  const version = httpVersionOf({ protocol: port.protocol, pool: policy.connectionPool, mesh, sniff, preserveHeaderCase });
  const query = {
    ...tlsQuery({ ctx, target, policy, mesh, assignments }),
    cluster,
    addressless: discovery === "originalDst",
    http2: version === "http2",
  };
  const tls = sni ? PLAIN : clientTls(query);
  return {
    name,
    discovery,
    ...policyFields({
      // What passes through to a server of the mesh is its clients' own TLS, from the first byte.
      policy: sni ? { ...policy, proxyProtocol: undefined } : policy,
      mesh,
      version,
      tls,
      preserveHeaderCase,
    }),
    ...statNameOf(mesh, target),
    loadBalancer: {
      algorithm:
        ctx.settings.redisFilter && port.protocol === "REDIS" ? redisAlgorithm(discovery) : algorithmOf(policy.loadBalancer, discovery),
      panicThreshold: plan.unhealthy ? 0 : (policy.outlierDetection?.minHealthPercent ?? 0),
      localities: localitiesOf(plan.locality),
      ...(plan.draining && { drainsSessions: true }),
    },
    bind: [],
    ...(discovery === "originalDst" || inline === undefined
      ? UNRESOLVED
      : { assignment: discovery === "logicalDns" ? withoutEmpty(inline) : inline, dns: dnsOf(target, mesh) }),
    metadata: metadataOf(target),
    ...(discovery === "originalDst" && port.upstreamPort !== undefined && { upstreamPort: port.upstreamPort }),
  };
}

/** The cluster of a service whose hosts are whatever names requests ask for: there are no endpoints to balance, so it has no subsets. */
function namedCluster(ctx: GenerateContext, target: Target): ClusterInput {
  const { key, service, port } = target;
  const cluster: OutboundClusterName = { port: port.number, subset: "", host: service.host };
  const name = outboundClusterName(cluster);
  const mesh = meshOf(ctx);
  const policy = withMeshDefaults(mesh, portPolicy(key.rule?.spec, port.number, undefined));
  const preserveHeaderCase = keepsSpelling(target);
  const version = httpVersionOf({ protocol: port.protocol, pool: policy.connectionPool, mesh, sniff: false, preserveHeaderCase });
  const query = tlsQuery({ ctx, target, policy, mesh, assignments: assignmentsOf(ctx) });
  const tls = clientTls({ ...query, cluster, addressless: false, byName: true, http2: version === "http2" });
  return {
    name,
    discovery: byName(serviceDnsCache(service.host, key.traits.family), tls),
    ...policyFields({ policy, mesh, version, tls, preserveHeaderCase }),
    ...statNameOf(mesh, target),
    loadBalancer: { algorithm: { kind: "clusterProvided" }, panicThreshold: undefined, localities: undefined },
    bind: [],
    assignment: undefined,
    dns: undefined,
    metadata: { ...metadataOf(target), services: [] },
  };
}

/** Nobody looks names up for the proxy, and nobody tells it of endpoints but EDS. */
const UNRESOLVED = { assignment: undefined, dns: undefined } as const;

const DNS_REFRESH_MS = 60_000;

/** Envoy looks names up less often than once in a millisecond, or refuses the cluster. */
function dnsOf({ key, service }: Target, mesh: MeshConfig): ClusterInput["dns"] {
  const wanted = mesh.dnsRefreshRate === undefined ? DNS_REFRESH_MS : msOfDuration(mesh.dnsRefreshRate);
  return { family: service.raceConnects ? "all" : key.traits.family, refreshMs: wanted > 1 ? wanted : DNS_REFRESH_MS };
}

/** Weights count where a rule sets them or ranks localities by what it says; Istio's default ranking does without, so as not to disturb the algorithm. */
function localitiesOf(rules: LocalityRules | undefined): ClusterInput["loadBalancer"]["localities"] {
  if (rules === undefined) return undefined;
  if (rules.kind === "zoneAware") return { enabled: rules.enabled, minClusterSize: rules.minClusterSize };
  return rules.kind === "failover" && Object.keys(rules.regions).length === 0 ? undefined : "weighted";
}

/** A port that declares nothing may speak it: sidecars find out, and gateways send it requests. */
const mayHearHttp1 = ({ protocol }: ServicePort): boolean => (isHttp(protocol) && !isHttp2(protocol)) || protocol === "Auto";

const keepsSpelling = ({ key, port }: Target): boolean => key.traits.preserveHeaderCase && mayHearHttp1(port);

function statNameOf(mesh: MeshConfig, { service, port, subset }: Target): Pick<ClusterInput, "statName"> {
  const pattern = mesh.outboundClusterStatName;
  return pattern === "" ? {} : { statName: statName(pattern, { service, subset: subset?.name ?? "", port, targetPort: 0 }) };
}

const isInline = ({ resolution }: Service): boolean => resolution === "dns" || resolution === "dnsRoundRobin";

interface PolicyParts {
  readonly policy: PortPolicy;
  readonly mesh: MeshConfig;
  readonly version: ReturnType<typeof httpVersionOf>;
  readonly tls: ClientTls;
  readonly preserveHeaderCase: boolean;
}

/** The parts of a cluster that follow from its policy alone. */
function policyFields({ policy, mesh, version, tls, preserveHeaderCase }: PolicyParts) {
  const { connectionPool: pool, retryBudget, outlierDetection } = policy;
  return {
    connectTimeoutMs: connectTimeoutOf(pool, mesh),
    limits: limitsOf(pool, retryBudget),
    outlier: outlierOf(outlierDetection),
    http: httpOptionsOf({
      version,
      pool,
      autoSni: tls.autoSni,
      autoSanValidation: tls.autoSanValidation,
      preserveHeaderCase,
      outlierCodes: outlierDetection?.outlierDetectionHttpErrorCodes ?? [],
    }),
    transport: { security: tls.security, proxyProtocol: proxyProtocolOf(policy) },
    keepalive: keepaliveOf(pool, mesh),
  };
}

interface DiscoveryQuery {
  readonly service: Service;
  readonly policy: PortPolicy;
  readonly traits: ClientTraits;
  readonly inline: LoadAssignmentInput | undefined;
  readonly ctx: GenerateContext;
}

/**
 * Where endpoints come from. A gateway has no original destination to keep, so it balances over the endpoints it knows; a logical DNS
 * cluster can hold one name only, more of them are resolved each on its own.
 */
function discoveryOf({ service, policy, traits, inline, ctx }: DiscoveryQuery): ClusterInput["discovery"] {
  if (service.resolution !== "none" && isPassthrough(policy.loadBalancer) && !traits.router) return "originalDst";
  switch (service.resolution) {
    case "dns":
      return service.raceConnects && endpointCount(inline) === 1 ? "logicalDns" : "strictDns";
    case "dnsRoundRobin":
      return endpointCount(inline) === 1 ? "logicalDns" : "strictDns";
    case "none":
      if (traits.router || (service.headless && ctx.settings.edsForHeadless)) return "eds";
      return "originalDst";
    default:
      return "eds";
  }
}

const endpointCount = (inline: LoadAssignmentInput | undefined): number =>
  inline?.localities.flatMap(({ endpoints }) => endpoints).length ?? 0;

/** A logical DNS cluster has its one endpoint in one locality: Envoy refuses it where localities of which nobody is used are named beside it. */
const withoutEmpty = (inline: LoadAssignmentInput): LoadAssignmentInput => ({
  ...inline,
  localities: inline.localities.filter(({ endpoints }) => endpoints.length > 0),
});

interface TlsParts {
  readonly ctx: GenerateContext;
  readonly target: Target;
  readonly policy: PortPolicy;
  readonly mesh: MeshConfig;
  readonly assignments: Assignments;
}

/** Where clients keep the address they chose, nothing is known of single endpoints: mutual TLS only if all of them take it. */
function tlsQuery({ ctx, target: { key, service, port }, policy, mesh, assignments }: TlsParts) {
  const keepsAddress = service.resolution === "none" || isPassthrough(policy.loadBalancer);
  const allTake = (): boolean => {
    const endpoints = ctx.registry.endpoints(key.service, port.number);
    return endpoints.length > 0 && endpoints.every(({ tlsMode }) => tlsMode === "istio");
  };
  const switchedOff = (): boolean => assignments.peerModes(service.namespace).disabled;
  return {
    settings: policy.tls,
    mesh,
    identity: key.traits.identity,
    files: service.meshExternal ? undefined : key.traits.files,
    credentials: key.traits.router || key.rule?.spec.workloadSelector !== undefined,
    credentialSocket: key.traits.credentialSocket,
    automatic: mesh.enableAutoMtls !== false && !service.meshExternal && !switchedOff() && (!keepsAddress || allTake()),
    serviceAccounts: () => ctx.registry.serviceAccounts(key.service, port.number),
    subjectAltNames: service.subjectAltNames,
    external: service.source === "External",
  };
}

const proxyProtocolOf = ({ proxyProtocol }: PortPolicy): "v1" | "v2" | undefined =>
  proxyProtocol === undefined ? undefined : proxyProtocol.version === 1 ? "v2" : "v1";

function metadataOf({ key, service, subset }: Target): ClusterMetadataInput {
  return {
    config: configPath(key.rule?.keys[0]),
    subset: subset?.name,
    services: [serviceMetadata(service)],
    external: service.meshExternal,
  };
}

/** How a cluster's metadata names a service; one of Kubernetes goes by its object's name, as in Istio. */
export const serviceMetadata = ({
  host,
  name,
  namespace,
  source,
}: Service): { readonly host: string; readonly name: string; readonly namespace: string } => ({
  host,
  name: source === "Kubernetes" ? name : host,
  namespace,
});

/** `/apis/…/destination-rule/name`: how Istio names the rule in a cluster's metadata. */
export function configPath(ruleKey: string | undefined): string | undefined {
  if (ruleKey === undefined) return undefined;
  const [, namespace = "", name = ""] = ruleKey.split("/");
  return `/apis/networking.istio.io/v1/namespaces/${namespace}/destination-rule/${name}`;
}
