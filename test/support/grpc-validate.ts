import { createRequire } from "node:module";
import { CLUSTER_TYPE, ENDPOINT_TYPE, LISTENER_TYPE, ROUTE_TYPE } from "../../src/wire/type-urls.ts";
import type { Offer } from "./envoy-validate.ts";

/** How gRPC's own client judges a resource. Not part of its API, but what it runs on everything it is sent. */
interface ResourceType {
  decode(context: object, resource: { readonly type_url: string; readonly value: Uint8Array }): { readonly error?: string };
}

const load = createRequire(import.meta.url);
const resourceType = (file: string, name: string): ResourceType => {
  const module = load(`@grpc/grpc-js-xds/build/src/xds-resource-type/${file}`) as Record<string, { get(): ResourceType }>;
  const found = module[name];
  if (found === undefined) throw new Error(`gRPC's client has no ${name}`);
  return found.get();
};

/** A client whose bootstrap has the certificate provider that agents declare. */
const CONTEXT = { bootstrap: { certificateProviders: { default: {} } } };

/** What gRPC's own client says against the resources of an offer. Its filter for rules about callers is behind a switch, which must be on. */
export function grpcRefusals({ label, resources }: Offer): readonly string[] {
  process.env.GRPC_XDS_EXPERIMENTAL_RBAC = "true";
  load("@grpc/grpc-js-xds").register();
  const judges: ReadonlyMap<string, ResourceType> = new Map([
    [LISTENER_TYPE, resourceType("listener-resource-type", "ListenerResourceType")],
    [ROUTE_TYPE, resourceType("route-config-resource-type", "RouteConfigurationResourceType")],
    [CLUSTER_TYPE, resourceType("cluster-resource-type", "ClusterResourceType")],
    [ENDPOINT_TYPE, resourceType("endpoint-resource-type", "EndpointResourceType")],
  ]);
  return [...resources].flatMap(([typeUrl, { resources: all }]) =>
    [...all.values()].flatMap(({ name, body }) => {
      const judge = judges.get(typeUrl);
      if (judge === undefined) return [`${label}: gRPC does not ask for ${typeUrl}`];
      const { error } = judge.decode(CONTEXT, { type_url: typeUrl, value: Buffer.from(body) });
      return error === undefined ? [] : [`${label} ${name}: ${error}`];
    }),
  );
}
