import { create } from "@bufbuild/protobuf";
import { contentHash } from "../../base/hash.ts";
import { outboundClusterName, parseOutboundClusterName } from "../../envoy/cluster/index.ts";
import type { RouteInput } from "../../envoy/route/route-input.ts";
import { buildVirtualHost } from "../../envoy/route/virtual-host.ts";
import { RouteConfigurationSchema } from "../../gen/envoy/config/route/v3/route_pb.js";
import { isHttp } from "../../model/protocol.ts";
import { refOf } from "../../model/service.ts";
import { encoded, sameEncoded } from "../../wire/encode.ts";
import type { Encoded } from "../../wire/encoded.ts";
import { ROUTE_TYPE } from "../../wire/type-urls.ts";
import { type ClientClass, clientClassId } from "../clusters/client-class.ts";
import type { GenerateContext } from "../context.ts";
import { MESH_GATEWAY } from "../lookups/virtual-services.ts";
import { plainHost, type RouteClient, siteFor } from "../routes/hosts.ts";
import { USUAL_HEADERS } from "../routes/route-headers.ts";
import { translateRules } from "../routes/translate/rule.ts";
import { callRoutes } from "./call-route.ts";
import type { Dialled, DialledHosts } from "./dialled-hosts.ts";
import type { Found, NamedResources } from "./named-provider.ts";

interface TableInput {
  readonly name: string;
  readonly host: string;
  readonly routes: readonly RouteInput[];
}

/**
 * Route tables, one for each host and port that is dialled. Whoever asks for it means that host, by whichever name it was dialled, so
 * it has one virtual host for all names.
 */
export function grpcRoutes(ctx: GenerateContext, hosts: DialledHosts): NamedResources<ClientClass> {
  const built = ctx.engine.query<TableInput, Encoded>({
    name: "grpc.table",
    id: (input) => contentHash(JSON.stringify(input)),
    compute: encodedTable,
    same: sameEncoded,
  });
  const asksForLabels = ctx.engine.query<string, boolean>({
    name: "grpc.rulesAskForLabels",
    compute: (key) => {
      const rules = ctx.lookups.virtualService(key)?.spec.http ?? [];
      return rules.some(({ match }) => match.some(({ sourceLabels }) => Object.keys(sourceLabels).length > 0));
    },
  });
  const scopeAsks = ctx.engine.query<Pick<ClientClass, "namespace" | "sidecar">, boolean>({
    name: "grpc.scopeAsksForLabels",
    id: ({ namespace, sidecar }) => `${namespace}|${sidecar ?? ""}`,
    compute: (scope) =>
      ctx.lookups.hasSelectiveDestinationRules(scope.namespace) ||
      ctx.lookups.scope(scope).egress.some(({ virtualServices }) => virtualServices.some((key) => asksForLabels(key))),
  });
  return {
    typeUrl: ROUTE_TYPE,
    ownerOf: ({ namespace, sidecar, labels }) => ({
      namespace,
      sidecar,
      labels: scopeAsks({ namespace, sidecar }) ? labels : undefined,
    }),
    ownerId: clientClassId,
    find: (client, name): Found => {
      const wanted = parseOutboundClusterName(name);
      if (wanted === undefined || wanted.sni || wanted.subset !== "") return undefined;
      const dialled = hosts.find(client, wanted.host, wanted.port);
      if (dialled === undefined) return undefined;
      const routes = routesOf(ctx, client, dialled);
      const service = ctx.registry.service(dialled.service)?.objectKey;
      const objects = [...(service === undefined ? [] : [service]), ...(dialled.rules === undefined ? [] : [dialled.rules])];
      return { resource: built({ name, host: `${wanted.host}:${wanted.port}`, routes }), objects };
    },
  };
}

function encodedTable({ name, host, routes }: TableInput): Encoded {
  const virtualHost = buildVirtualHost({ name: host, routes, requireTls: false, includeAttemptCount: false });
  const table = create(RouteConfigurationSchema, { name, virtualHosts: [{ ...virtualHost, name: host, domains: ["*"] }] });
  return encoded({ typeUrl: ROUTE_TYPE, name }, RouteConfigurationSchema, table);
}

/** Rules for HTTP count on ports that speak it, or do not say what they speak; where none of them applies, and elsewhere, calls go to the service. */
function routesOf(ctx: GenerateContext, { namespace, labels }: ClientClass, { service, port, rules }: Dialled): readonly RouteInput[] {
  const client: RouteClient = { namespace, labels, headers: USUAL_HEADERS };
  const { host } = service;
  const number = port.number;
  const site = { authority: `${host}:${number}`, cluster: outboundClusterName({ port: number, subset: "", host }) };
  const resolved = rules === undefined ? undefined : ctx.lookups.virtualService(rules);
  const ruled =
    resolved !== undefined && (isHttp(port.protocol) || port.protocol === "Auto")
      ? translateRules(resolved, siteFor(ctx, client, { gateway: MESH_GATEWAY, port: number, secure: false, defaultPort: () => number }))
      : [];
  const routes = ruled.length > 0 ? ruled : plainHost(ctx, client, { ...refOf(service), port: number }).routes;
  return routes.flatMap((route) => callRoutes(route, site));
}
