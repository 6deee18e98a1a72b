import { msOfDuration } from "../../base/duration.ts";
import { placeOf } from "../../config/checks/place.ts";
import { validateExtensionProvider } from "../../config/mesh/validate-extension-provider.ts";
import type { ExtAuthzInput } from "../../envoy/filters/ext-authz/ext-authz-input.ts";
import type {
  MeshConfig_ExtensionProvider_EnvoyExternalAuthorizationGrpcProvider as GrpcProvider,
  MeshConfig_ExtensionProvider_EnvoyExternalAuthorizationHttpProvider as HttpProvider,
  MeshConfig,
  MeshConfig_ExtensionProvider,
} from "../../gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import type { ServiceRef } from "../../model/service.ts";

/** Where an authorizer is looked up. */
export interface AuthorizerContext {
  readonly mesh: Pick<MeshConfig, "extensionProviders">;
  /** Services that declare a host. */
  readonly servicesByHost: (host: string) => readonly ServiceRef[];
}

/** How long an authorizer may take where the provider does not say; Istio's value. */
const DEFAULT_TIMEOUT_MS = 600_000;

/**
 * The authorizer that a CUSTOM policy names. Undefined where there is none of that name, it is something else, its settings are wrong or
 * its service is unknown: whoever asks must deny then, since nobody can decide.
 */
export function externalAuthorizer(name: string, context: AuthorizerContext): ExtAuthzInput | undefined {
  const found = context.mesh.extensionProviders.find((one) => one.name === name);
  if (found === undefined || !isWellFormed(found)) return undefined;
  const { provider } = found;
  if (provider.case === "envoyExtAuthzHttp" && namesAllHeaders(provider.value)) return undefined;
  if (provider.case !== "envoyExtAuthzHttp" && provider.case !== "envoyExtAuthzGrpc") return undefined;
  const host = knownHost(provider.value.service, context);
  if (host === undefined) return undefined;
  return provider.case === "envoyExtAuthzGrpc"
    ? { protocol: "grpc", ...sharedFields(provider.value, host) }
    : { protocol: "http", ...sharedFields(provider.value, host), ...httpFields(provider.value) };
}

function isWellFormed(provider: MeshConfig_ExtensionProvider): boolean {
  let faults = 0;
  validateExtensionProvider(
    provider,
    placeOf(() => void faults++, []),
  );
  return faults === 0;
}

/** Headers are named, or how their names begin or end; not all of them at once, as the reference of MeshConfig has it. */
const namesAllHeaders = (provider: HttpProvider): boolean =>
  [
    provider.includeRequestHeadersInCheck,
    provider.includeHeadersInCheck,
    provider.headersToUpstreamOnAllow,
    provider.headersToDownstreamOnDeny,
    provider.headersToDownstreamOnAllow,
  ].some((names) => names.includes("*"));

/** The service is written `host` or `namespace/host`. One that several namespaces declare must be told apart: any of them could decide otherwise. */
function knownHost(service: string, { servicesByHost }: AuthorizerContext): string | undefined {
  const slash = service.indexOf("/");
  const host = service.slice(slash + 1);
  const namespaces = new Set(servicesByHost(host).map(({ namespace }) => namespace));
  const isKnown = slash === -1 ? namespaces.size === 1 : namespaces.has(service.slice(0, slash));
  return isKnown ? host : undefined;
}

function sharedFields(provider: HttpProvider | GrpcProvider, host: string) {
  const body = provider.includeRequestBodyInCheck;
  return {
    cluster: `outbound|${provider.port}||${host}`,
    host,
    timeoutMs: provider.timeout === undefined ? DEFAULT_TIMEOUT_MS : msOfDuration(provider.timeout),
    failOpen: provider.failOpen,
    clearRouteCache: provider.clearRouteCache,
    ...(provider.statusOnError !== "" && { statusOnError: Number(provider.statusOnError) }),
    // Of a body that may have no bytes nothing is sent; Envoy refuses to be told so.
    ...(body !== undefined &&
      body.maxRequestBytes > 0 && {
        body: { maxBytes: body.maxRequestBytes, allowPartial: body.allowPartialMessage, packAsBytes: body.packAsBytes },
      }),
  };
}

const httpFields = (provider: HttpProvider) => ({
  pathPrefix: provider.pathPrefix,
  // `includeHeadersInCheck` is the field's old name.
  requestHeaders: provider.includeRequestHeadersInCheck.length > 0 ? provider.includeRequestHeadersInCheck : provider.includeHeadersInCheck,
  additionalHeaders: Object.entries(provider.includeAdditionalHeadersInCheck)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => ({ name, value })),
  upstreamHeaders: provider.headersToUpstreamOnAllow,
  deniedHeaders: provider.headersToDownstreamOnDeny,
  allowedHeaders: provider.headersToDownstreamOnAllow,
});
