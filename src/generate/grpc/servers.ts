import type { Labels } from "../../base/labels.ts";
import type { ConfigObject } from "../../config/object.ts";
import { PolicyFilters } from "../../envoy/filters/policy-filters.ts";
import { buildGrpcServer, type GrpcServerInput } from "../../envoy/grpc/server-listener.ts";
import { ListenerSchema } from "../../gen/envoy/config/listener/v3/listener_pb.js";
import type { AuthorizationPolicy } from "../../gen/istio/security/v1beta1/authorization_policy_pb.js";
import { encoded, sameEncoded } from "../../wire/encode.ts";
import type { Encoded } from "../../wire/encoded.ts";
import { LISTENER_TYPE } from "../../wire/type-urls.ts";
import type { GenerateContext } from "../context.ts";
import { mtlsModesOf } from "../listeners/inbound/mtls-mode.ts";
import { authorizationOf } from "../policies/authorization.ts";
import { policyChoiceOf } from "../policies/policy-choice.ts";
import { authorizationContext } from "../policies/policy-filters.ts";
import type { Found } from "./named-provider.ts";
import { parseTargetName, SERVER_PREFIX } from "./target-name.ts";

/** What of a workload decides how its gRPC servers behave. */
export interface ServerWorkload {
  readonly namespace: string;
  readonly labels: Labels;
  readonly addresses: readonly string[];
  readonly remoteCluster: string;
  readonly pod: string;
  readonly claim: string;
  readonly hasIdentity: boolean;
}

/** Clients of the mesh expect mutual TLS of workloads with this label. */
const TLS_MODE = "security.istio.io/tlsMode";

/**
 * Listeners of gRPC servers by name. Only ports that a service of the workload declares have one: the server does not serve before it
 * has its listener, so nothing is open by mistake.
 */
export function defineServers(ctx: GenerateContext): (workload: ServerWorkload, name: string) => Found {
  const modes = mtlsModesOf(ctx);
  const policiesFor = policyChoiceOf(ctx);
  const policies = definePolicies(ctx);
  const built = ctx.engine.query<GrpcServerInput, Encoded>({
    name: "grpc.server",
    id: (input) => JSON.stringify(input),
    compute: (input) => encoded({ typeUrl: LISTENER_TYPE, name: input.name }, ListenerSchema, buildGrpcServer(input)),
    same: sameEncoded,
  });
  const servedBy = (workload: ServerWorkload, port: number): readonly string[] =>
    workload.addresses
      .flatMap((address) => ctx.registry.instancesAt(address, workload.namespace, { ...workload, cluster: workload.remoteCluster }))
      .filter(({ endpoint }) => endpoint.port === port)
      .flatMap(({ service }) => ctx.registry.service(service)?.objectKey ?? []);
  return (workload, name) => {
    const bound = parseTargetName(name.slice(SERVER_PREFIX.length));
    if (bound === undefined) return undefined;
    const services = servedBy(workload, bound.port);
    if (services.length === 0) return undefined;
    const { namespace, labels } = workload;
    const demanded = modes({ namespace, labels });
    const mode = demanded.ports.find(({ port }) => port === bound.port)?.mode ?? demanded.mode;
    const { authorization } = policiesFor({ namespace, labels });
    const own = policies(authorization);
    const input: GrpcServerInput = {
      name,
      address: bound.host,
      port: bound.port,
      // gRPC cannot take both: permissive servers take what clients of the mesh will speak to them.
      mutualTls: workload.hasIdentity && (mode === "strict" || (mode === "permissive" && labels[TLS_MODE] === "istio")),
      ...(own !== undefined && { policies: own }),
    };
    return { resource: built(input), objects: [...new Set([...services, ...authorization])] };
  };
}

/**
 * Who may call. gRPC knows rules that allow and rules that deny, and validates no tokens; what an external authorizer should be asked about
 * is refused, because gRPC cannot ask.
 */
function definePolicies(ctx: GenerateContext): (keys: readonly string[]) => PolicyFilters | undefined {
  const filters = ctx.engine.query<readonly string[], PolicyFilters>({
    name: "grpc.policies",
    id: (keys) => JSON.stringify(keys),
    same: (a, b) => a.id === b.id,
    compute: (keys) => {
      const objects = keys
        .map((key) => ctx.inputs.objects.get(key) as ConfigObject<AuthorizationPolicy> | undefined)
        .filter((object) => object !== undefined);
      const { custom, rbac } = authorizationOf(objects, authorizationContext(ctx));
      return new PolicyFilters({
        jwt: undefined,
        custom: custom.map((rules) => ({ ...rules, authorizer: undefined })),
        rbac: rbac
          .filter(({ action, rules }) => action !== "LOG" && rules !== undefined)
          .map(({ action, rules = [] }) => ({ action, rules })),
      });
    },
  });
  return (keys) => (keys.length === 0 ? undefined : filters(keys));
}
