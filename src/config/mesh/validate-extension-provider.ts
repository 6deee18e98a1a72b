import type { Duration } from "@bufbuild/protobuf/wkt";
import { quote } from "../../base/quote.ts";
import { StatusCode } from "../../gen/envoy/type/v3/http_status_pb.js";
import type {
  MeshConfig_ExtensionProvider,
  MeshConfig_ExtensionProvider_EnvoyExternalAuthorizationGrpcProvider,
  MeshConfig_ExtensionProvider_EnvoyExternalAuthorizationHttpProvider,
  MeshConfig_ExtensionProvider_LightstepTracingProvider,
  MeshConfig_ExtensionProvider_OpenTelemetryTracingProvider,
} from "../../gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import { isAddress } from "../checks/address.ts";
import { millisOf } from "../checks/duration.ts";
import { headerChangeFault, headerValueFault } from "../checks/header.ts";
import { fqdnFault, isDnsLabel, wildcardDomainFault } from "../checks/host-name.ts";
import type { Place } from "../checks/place.ts";
import { portFault } from "../checks/port.ts";

/** The list of providers: each has a name of its own and is well formed. */
export function validateExtensionProviders(providers: readonly MeshConfig_ExtensionProvider[], place: Place): void {
  const names = new Set<string>();
  for (const [index, provider] of providers.entries()) {
    const at = place.in(index);
    if (provider.name === "") at.in("name").fault("field.required", "must be set");
    else if (names.has(provider.name)) at.in("name").fault("field.duplicate", `another provider is called ${quote(provider.name)}`);
    names.add(provider.name);
    validateExtensionProvider(provider, at);
  }
}

/** One provider, whatever it is. */
export function validateExtensionProvider({ provider }: MeshConfig_ExtensionProvider, place: Place): void {
  const at = provider.case === undefined ? place : place.in(provider.case);
  if (provider.case === "lightstep" || provider.case === "opencensus")
    at.fault("field.ineffective", "Envoy has no such tracer any more; use opentelemetry");
  switch (provider.case) {
    case "envoyExtAuthzHttp":
      validateExtAuthzHttp(provider.value, at);
      break;
    case "envoyExtAuthzGrpc":
      validateExtAuthzGrpc(provider.value, at);
      break;
    case "lightstep":
      validateLightstep(provider.value, at);
      break;
    case "opentelemetry":
      validateOpenTelemetry(provider.value, at);
      break;
    case "zipkin":
      validateServiceAndPort(provider.value, at);
      validateTimeout(provider.value.timeout, at);
      break;
    case "datadog":
    case "opencensus":
    case "skywalking":
    case "envoyHttpAls":
    case "envoyTcpAls":
    case "envoyOtelAls":
    case "sds":
      validateServiceAndPort(provider.value, at);
      break;
    case "prometheus":
    case "stackdriver":
    case "envoyFileAccessLog":
      break;
    case undefined:
      at.fault("field.required", "says no kind of provider");
  }
}

/** What every provider that is called over the network has. */
export function validateServiceAndPort(provider: { readonly service: string; readonly port: number }, place: Place): void {
  place.in("service").check("field.host", extensionServiceFault(provider.service));
  place.in("port").check("field.port", portFault(provider.port));
}

function validateTimeout(timeout: Duration | undefined, place: Place): void {
  if (timeout !== undefined && millisOf(timeout) < 0) place.in("timeout").fault("field.range", "must not be negative");
}

/** LightStep also wants a token. */
export function validateLightstep(provider: MeshConfig_ExtensionProvider_LightstepTracingProvider, place: Place): void {
  validateServiceAndPort(provider, place);
  if (provider.accessToken === "") place.in("accessToken").fault("field.required", "must be set");
}

/** Spans go out over one protocol only. */
export function validateOpenTelemetry(provider: MeshConfig_ExtensionProvider_OpenTelemetryTracingProvider, place: Place): void {
  validateServiceAndPort(provider, place);
  validateTimeout(provider.http?.timeout, place.in("http"));
  validateTimeout(provider.grpc?.timeout, place.in("grpc"));
  if (provider.grpc !== undefined && provider.http !== undefined)
    place.in("http").fault("field.conflict", "cannot be set together with grpc");
}

/** An authorizer that is asked over gRPC. */
export function validateExtAuthzGrpc(provider: MeshConfig_ExtensionProvider_EnvoyExternalAuthorizationGrpcProvider, place: Place): void {
  validateServiceAndPort(provider, place);
  validateTimeout(provider.timeout, place);
  place.in("statusOnError").check("field.invalid", statusOnErrorFault(provider.statusOnError));
}

/** One that is asked over HTTP: the path before that of the request must be one, and headers that are added such as Envoy adds, too. */
export function validateExtAuthzHttp(provider: MeshConfig_ExtensionProvider_EnvoyExternalAuthorizationHttpProvider, place: Place): void {
  validateServiceAndPort(provider, place);
  validateTimeout(provider.timeout, place);
  place.in("statusOnError").check("field.invalid", statusOnErrorFault(provider.statusOnError));
  const { pathPrefix } = provider;
  if (pathPrefix !== "" && (!pathPrefix.startsWith("/") || !isPath(pathPrefix))) {
    place.in("pathPrefix").fault("field.invalid", `${quote(pathPrefix)} is not a path that begins with /`);
  }
  for (const [name, value] of Object.entries(provider.includeAdditionalHeadersInCheck))
    place.in("includeAdditionalHeadersInCheck", name).check("field.invalid", headerChangeFault(name) ?? headerValueFault(value));
}

/** The service of a provider: a host name or IP address, or namespace/host where the namespace decides among equal names. */
export function extensionServiceFault(service: string): string | undefined {
  if (service === "") return "must be set";
  const slash = service.indexOf("/");
  if (slash === -1) return isAddress(service) ? undefined : fqdnFault(service);
  const namespace = service.slice(0, slash);
  if (!["*", ".", "~"].includes(namespace) && !isDnsLabel(namespace)) return `${quote(namespace)} is not a namespace`;
  return wildcardDomainFault(service.slice(slash + 1));
}

/** What an authorizer that cannot be asked may be answered with. Zero has a name in Envoy's API and is no status. */
const statusOnErrorFault = (status: string): string | undefined =>
  status === "" || (/^\d{1,3}$/.test(status) && Number(status) > 0 && STATUS_CODES.has(Number(status)))
    ? undefined
    : `${quote(status)} is not an HTTP status that Envoy sends`;

const STATUS_CODES: ReadonlySet<unknown> = new Set(Object.values(StatusCode));

const isPath = (text: string): boolean => !/%(?![0-9a-fA-F]{2})|\p{Cc}/u.test(text);
