import { isIp } from "../../base/address.ts";
import type { Query } from "../../engine/index.ts";
import { outboundClusterName } from "../../envoy/cluster/index.ts";
import { buildGrpcTarget, type GrpcTargetInput } from "../../envoy/grpc/client-listener.ts";
import { ListenerSchema } from "../../gen/envoy/config/listener/v3/listener_pb.js";
import type { ProxyView } from "../../model/proxy.ts";
import { addressesIn } from "../../model/service.ts";
import { encoded, sameEncoded } from "../../wire/encode.ts";
import type { Encoded } from "../../wire/encoded.ts";
import { LISTENER_TYPE } from "../../wire/type-urls.ts";
import { type GenerateContext, type ScopeKey, scopeId } from "../context.ts";
import type { DialledHosts } from "./dialled-hosts.ts";
import type { Found, NamedResources } from "./named-provider.ts";
import { defineServers, type ServerWorkload } from "./servers.ts";
import { fullNames, parseTargetName, SERVER_PREFIX } from "./target-name.ts";

interface ListenerOwner {
  readonly scope: ScopeKey;
  readonly dnsDomain: string;
  /** The other cluster whose addresses of services count. */
  readonly remoteCluster: string;
  /** Only of workloads that open a server: all others of a scope share what they dial. */
  readonly server: ServerWorkload | undefined;
}

/** Listeners by name: of what clients dial, and of what a server listens on. */
export function grpcListeners(ctx: GenerateContext, hosts: DialledHosts): NamedResources<ListenerOwner> {
  const servers = defineServers(ctx);
  const built = defineTargets(ctx);
  return {
    typeUrl: LISTENER_TYPE,
    ownerOf: (view, names) => ({
      scope: { namespace: view.namespace, sidecar: view.sidecar },
      dnsDomain: view.dnsDomain,
      remoteCluster: view.remoteCluster,
      server: [...names].some(isServerName) ? workloadOf(view) : undefined,
    }),
    ownerId: ({ scope, dnsDomain, remoteCluster, server }) =>
      JSON.stringify([scopeId(scope), dnsDomain, remoteCluster, ...Object.values(server ?? {})]),
    find: ({ server, ...client }, name) => {
      if (!isServerName(name)) return target({ ctx, hosts, built, ...client }, name);
      return server === undefined ? undefined : servers(server, name);
    },
    all: ({ scope }) => hosts.all(scope),
  };
}

const isServerName = (name: string): boolean => name.startsWith(SERVER_PREFIX);

const workloadOf = ({ namespace, labels, addresses, remoteCluster, pod, claim, hasIdentity }: ProxyView): ServerWorkload => ({
  namespace,
  labels,
  addresses,
  remoteCluster,
  pod,
  claim,
  hasIdentity: hasIdentity !== false,
});

function defineTargets(ctx: GenerateContext): Query<GrpcTargetInput, Encoded> {
  return ctx.engine.query<GrpcTargetInput, Encoded>({
    name: "grpc.target",
    id: ({ name, routes, address }) => `${name}|${routes}|${address}`,
    compute: (input) => encoded({ typeUrl: LISTENER_TYPE, name: input.name }, ListenerSchema, buildGrpcTarget(input)),
    same: sameEncoded,
  });
}

interface TargetParts extends Omit<ListenerOwner, "server"> {
  readonly ctx: GenerateContext;
  readonly hosts: DialledHosts;
  readonly built: Query<GrpcTargetInput, Encoded>;
}

/** Short names mean what they mean to the workload's resolver; the name of an ExternalName Service means the service it leads to. */
function target({ ctx, hosts, built, scope, dnsDomain, remoteCluster }: TargetParts, name: string): Found {
  const wanted = parseTargetName(name);
  if (wanted === undefined) return undefined;
  for (const candidate of fullNames(wanted.host, dnsDomain)) {
    const host = ctx.lookups.aliases.targetOf(candidate) ?? candidate;
    const dialled = hosts.find(scope, host, wanted.port);
    const service = dialled === undefined ? undefined : ctx.registry.service(dialled.service);
    if (service === undefined) continue;
    const address = addressesIn(service, remoteCluster).find(isIp) ?? "0.0.0.0";
    const routes = outboundClusterName({ port: wanted.port, subset: "", host });
    return { resource: built({ name, routes, address, port: wanted.port }), objects: [service.objectKey] };
  }
  return undefined;
}
