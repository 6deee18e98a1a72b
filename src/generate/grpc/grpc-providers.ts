import type { ProxyView } from "../../model/proxy.ts";
import type { ResourceProvider } from "../../xds/provider.ts";
import type { GenerateContext } from "../context.ts";
import { grpcClusters } from "./clusters.ts";
import { defineDestinations } from "./destinations.ts";
import { defineDialledHosts } from "./dialled-hosts.ts";
import { grpcEndpoints } from "./endpoints.ts";
import { grpcListeners } from "./listeners.ts";
import { createNamedProvider } from "./named-provider.ts";
import { grpcRoutes } from "./routes.ts";

/**
 * Lets workloads that speak gRPC without a proxy (node metadata `GENERATOR: grpc`) be served beside Envoy: takes the providers made for
 * Envoy, in any order, and gives them back so that each asks who the client is. EnvoyFilters are patches for Envoy and stay on its side.
 */
export function withGrpcClients(ctx: GenerateContext, providers: readonly ResourceProvider[]): readonly ResourceProvider[] {
  const hosts = defineDialledHosts(ctx);
  const destinations = defineDestinations(ctx);
  const forGrpc = [
    createNamedProvider(ctx, grpcListeners(ctx, hosts)),
    createNamedProvider(ctx, grpcRoutes(ctx, hosts)),
    createNamedProvider(ctx, grpcClusters(ctx, destinations)),
    createNamedProvider(ctx, grpcEndpoints(ctx, destinations)),
  ];
  const byType = new Map(forGrpc.map((provider) => [provider.typeUrl, provider]));
  return providers.map((envoy) => byClient(envoy, byType.get(envoy.typeUrl)));
}

/** Order, companions and urgency of a type are the same for both: they are about what refers to what. */
function byClient(envoy: ResourceProvider, grpc: ResourceProvider | undefined): ResourceProvider {
  if (grpc === undefined) return envoy;
  const of = (view: ProxyView): ResourceProvider => (view.generator === "grpc" ? grpc : envoy);
  return {
    ...envoy,
    prepare: (view, wanted) => of(view).prepare(view, wanted),
    offered: (view, wanted) => of(view).offered(view, wanted),
    isLastResult: (view) => of(view).isLastResult?.(view) === true,
    provenance: (view, name) => of(view).provenance(view, name),
  };
}
