import { defineInputs, type Inputs } from "../config/inputs.ts";
import type { CredentialSource } from "../credentials/credential-source.ts";
import { type PullSecretSource, storedPullSecrets } from "../credentials/pull-secret.ts";
import { storedCredentials } from "../credentials/stored-credentials.ts";
import { createEngine, type Engine, type EngineOptions, type Query } from "../engine/index.ts";
import type { ProxyView } from "../model/proxy.ts";
import { createRegistry } from "../registry/create-registry.ts";
import type { ResourceProvider } from "../xds/provider.ts";
import { createBootstrapProvider } from "./bootstrap-provider.ts";
import { createClusterProvider } from "./clusters/cluster-provider.ts";
import type { GenerateContext, GenerateSettings } from "./context.ts";
import { assignmentsOf } from "./endpoints/assignments.ts";
import { createEndpointProvider } from "./endpoints/endpoint-provider.ts";
import { withPullSecrets } from "./extensions/pull-secrets.ts";
import { createWasmProvider } from "./extensions/wasm-provider.ts";
import { withGrpcClients } from "./grpc/grpc-providers.ts";
import { createListenerProvider } from "./listeners/provider.ts";
import { createLookups } from "./lookups/lookups.ts";
import { createNameTableProvider } from "./names/name-table-provider.ts";
import { createExtensionProvider } from "./patches/extension-provider.ts";
import type { LeftOut } from "./patches/patched-kind.ts";
import { patchedProvider } from "./patches/patched-provider.ts";
import { createPatches, type Patches } from "./patches/patches.ts";
import { type ReportedProxy, type ReportSteps, reportPatches } from "./patches/report.ts";
import { createPeerProvider } from "./peers/peer-provider.ts";
import type { KeyLocation } from "./policies/key-location.ts";
import { defineKeyLocations } from "./policies/key-locations.ts";
import { defineObjectProblems, type ObjectProblems } from "./problems/problems.ts";
import { defineProxyView, type NodeFacts } from "./proxy-view.ts";
import { createRouteProviders } from "./routes/provider.ts";
import type { MayReadSecrets } from "./secrets/secret-access.ts";
import { createSecretProvider, type WithheldSecret } from "./secrets/secret-provider.ts";

/** Everything between validated inputs and encoded resources, put together on one engine. Holds no sockets and reads no files. */
export interface World {
  readonly engine: Engine;
  readonly inputs: Inputs;
  readonly context: GenerateContext;
  readonly view: Query<NodeFacts, ProxyView>;
  /** In the order in which a proxy needs them: make before break. */
  readonly providers: readonly ResourceProvider[];
  /** EnvoyFilters. Their descriptors must be given (`use`) before a proxy is served while one is in force. */
  readonly patches: Patches;
  /** Host names of gateways into other networks. Who resolves them puts their addresses into `inputs.names`. */
  gatewayNames(): readonly string[];
  /** Where keys of token issuers are published. Who fetches them puts them into `inputs.keySets`. */
  keyLocations(): readonly KeyLocation[];
  /** What is wrong with objects beside each other. */
  readonly problems: ObjectProblems;
  /** What each patch of each EnvoyFilter does at some proxies. */
  patchReport(proxies: Iterable<ReportedProxy>): ReportSteps;
}

export interface WorldOptions extends EngineOptions {
  /** Told of each patch of an EnvoyFilter that is left out of a resource, when that is found. */
  readonly patchLeftOut?: (fault: LeftOut) => void;
  /** Where credentials come from; by default Secrets among the inputs. The store keeps them out of those, so a running control plane names it. */
  readonly credentials?: CredentialSource;
  /** Where logins for registries of Wasm modules come from; the same. */
  readonly pullSecrets?: PullSecretSource;
  /** Told of each secret that a proxy asks for and is not given, at each look. */
  readonly secretWithheld?: (secret: WithheldSecret) => void;
  /** Who may read the secrets of its own namespace; everybody, where nothing else is known. */
  readonly mayReadSecrets?: MayReadSecrets;
}

/** Puts everything together on a new engine. What is not among the inputs yet is absent, not waited for: a world without objects serves an empty mesh. */
export function createWorld(settings: GenerateSettings, options: WorldOptions = {}): World {
  const engine = createEngine(options);
  const inputs = defineInputs(engine);
  const registry = createRegistry(engine, inputs, {
    clusterId: settings.clusterId,
    clusterDomain: settings.clusterDomain,
    autoAddressRanges: settings.autoAddressRanges,
    dualStack: settings.dualStack,
  });
  const base = { engine, inputs, registry, settings };
  const context: GenerateContext = { ...base, lookups: createLookups(base) };
  const keyLocations = defineKeyLocations(context);
  const patches = createPatches(context, options.patchLeftOut);
  const { plans } = patches;
  const clusters = patchedProvider(createClusterProvider(context), patches.clusters, plans);
  const listeners = patchedProvider(createListenerProvider(context), patches.listeners, plans);
  const tables = createRouteProviders(context);
  const routes = patchedProvider(tables.routes, patches.routes, plans);
  const hosts = patchedProvider(tables.virtualHosts, patches.virtualHosts, plans);
  const extensions = createExtensionProvider(patches, createWasmProvider(context));
  const credentials = options.credentials ?? storedCredentials(inputs.objects);
  const secrets = createSecretProvider(context, {
    credentials,
    ...(options.secretWithheld !== undefined && { withheld: options.secretWithheld }),
    ...(options.mayReadSecrets !== undefined && { mayRead: options.mayReadSecrets }),
  });
  return {
    engine,
    inputs,
    context,
    view: defineProxyView(context),
    providers: withGrpcClients(context, [
      createBootstrapProvider(context, plans),
      clusters.provider,
      createEndpointProvider(context),
      secrets,
      listeners.provider,
      routes.provider,
      hosts.provider,
      withPullSecrets(context, extensions.provider, {
        source: options.pullSecrets ?? storedPullSecrets(inputs.objects),
        ...(options.secretWithheld !== undefined && { withheld: options.secretWithheld }),
      }),
      createNameTableProvider(context),
      createPeerProvider(context),
    ]),
    patches,
    problems: defineObjectProblems(context, credentials),
    gatewayNames: () => assignmentsOf(context).gatewayNames(""),
    keyLocations: () => keyLocations(""),
    patchReport: (proxies) => reportPatches(patches, [clusters, listeners, routes, hosts, extensions], proxies),
  };
}
