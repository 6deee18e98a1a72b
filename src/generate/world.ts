import { defineInputs, type Inputs } from "../config/inputs.ts";
import { createEngine, type Engine, type EngineOptions, type Query } from "../engine/index.ts";
import type { ProxyView } from "../model/proxy.ts";
import { createRegistry } from "../registry/create-registry.ts";
import type { ResourceProvider } from "../xds/provider.ts";
import { createClusterProvider } from "./clusters/cluster-provider.ts";
import type { GenerateContext, GenerateSettings } from "./context.ts";
import { createEndpointProvider } from "./endpoints/endpoint-provider.ts";
import { createListenerProvider } from "./listeners/provider.ts";
import { createLookups } from "./lookups/lookups.ts";
import { defineProxyView, type NodeFacts } from "./proxy-view.ts";
import { createRouteProvider } from "./routes/provider.ts";

/** Everything between validated inputs and encoded resources, put together on one engine. Holds no sockets and reads no files. */
export interface World {
  readonly engine: Engine;
  readonly inputs: Inputs;
  readonly context: GenerateContext;
  readonly view: Query<NodeFacts, ProxyView>;
  /** In the order in which a proxy needs them: make before break. */
  readonly providers: readonly ResourceProvider[];
}

export function createWorld(settings: GenerateSettings, options: EngineOptions = {}): World {
  const engine = createEngine(options);
  const inputs = defineInputs(engine);
  const registry = createRegistry(engine, inputs, {
    clusterId: settings.clusterId,
    clusterDomain: settings.clusterDomain,
    autoAddressRanges: settings.autoAddressRanges,
  });
  const base = { engine, inputs, registry, settings };
  const context: GenerateContext = { ...base, lookups: createLookups(base) };
  return {
    engine,
    inputs,
    context,
    view: defineProxyView(context),
    providers: [
      createClusterProvider(context),
      createEndpointProvider(context),
      createListenerProvider(context),
      createRouteProvider(context),
    ],
  };
}
