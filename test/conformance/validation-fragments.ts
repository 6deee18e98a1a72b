import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { DurationSchema } from "@bufbuild/protobuf/wkt";
import { addressFault, subnetFault } from "../../src/config/checks/address.ts";
import { checkClientTls } from "../../src/config/checks/client-tls.ts";
import { checkConnectionPool } from "../../src/config/checks/connection-pool.ts";
import { checkDestination } from "../../src/config/checks/destination.ts";
import { durationFault, millisOf } from "../../src/config/checks/duration.ts";
import { checkExportTo } from "../../src/config/checks/export-to.ts";
import { headerOrClaimFault, headerValueFault, strictHeaderNameFault } from "../../src/config/checks/header.ts";
import { fqdnFault, gatewayDomainFault, trustDomainFault, wildcardDomainFault } from "../../src/config/checks/host-name.ts";
import { checkHttpRetry } from "../../src/config/checks/http-retry.ts";
import { checkLoadBalancer } from "../../src/config/checks/load-balancer.ts";
import { checkLocalities, checkLocalityLb, checkZoneAwareLb } from "../../src/config/checks/locality-weights.ts";
import { checkOutlierDetection } from "../../src/config/checks/outlier-detection.ts";
import { type Place, placeOf } from "../../src/config/checks/place.ts";
import { portFault, portNameFault } from "../../src/config/checks/port.ts";
import { checkServerTls } from "../../src/config/checks/server-tls.ts";
import { checkTrafficPolicy } from "../../src/config/checks/traffic-policy.ts";
import type { Report } from "../../src/config/kind-def.ts";
import { checkServer, checkServerPort } from "../../src/config/kinds/gateway/check-server.ts";
import { checkCors } from "../../src/config/kinds/virtual-service/check-cors.ts";
import { checkAbort, checkDelay } from "../../src/config/kinds/virtual-service/check-fault.ts";
import { checkDestinations, checkHttpRoute } from "../../src/config/kinds/virtual-service/check-http-route.ts";
import {
  checkDirectResponse,
  checkRedirect,
  checkRegexRewrite,
  checkRewrite,
} from "../../src/config/kinds/virtual-service/check-responses.ts";
import { httpStatusFault } from "../../src/config/kinds/virtual-service/http-status.ts";
import {
  extensionServiceFault,
  validateLightstep,
  validateOpenTelemetry,
  validateServiceAndPort,
} from "../../src/config/mesh/validate-extension-provider.ts";
import {
  maxConnectionAgeFault,
  protocolDetectionTimeoutFault,
  validateConnectTimeout,
  validateDefaultTrafficPolicy,
  validateInboundRetry,
  validateMeshConfig,
  validateServiceSettings,
} from "../../src/config/mesh/validate-mesh-config.ts";
import { validateMeshNetworks } from "../../src/config/mesh/validate-networks.ts";
import {
  controlPlaneAuthPolicyFault,
  proxyAddressFault,
  validateConnectionSettings,
  validateDrainDuration,
  validateProxyConfig,
} from "../../src/config/mesh/validate-proxy-config.ts";
import { parseGoDuration } from "../../src/config/parse/go-duration.ts";
import { readMessage } from "../../src/config/parse/read-message.ts";
import {
  MeshConfig_DefaultTrafficPolicySchema,
  MeshConfig_ExtensionProvider_DatadogTracingProviderSchema,
  MeshConfig_ExtensionProvider_EnvoyHttpGrpcV3LogProviderSchema,
  MeshConfig_ExtensionProvider_EnvoyOpenTelemetryLogProviderSchema,
  MeshConfig_ExtensionProvider_EnvoyTcpGrpcV3LogProviderSchema,
  MeshConfig_ExtensionProvider_LightstepTracingProviderSchema,
  MeshConfig_ExtensionProvider_OpenCensusAgentTracingProviderSchema,
  MeshConfig_ExtensionProvider_OpenTelemetryTracingProviderSchema,
  MeshConfig_ExtensionProvider_ZipkinTracingProviderSchema,
  MeshConfigSchema,
} from "../../src/gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import { MeshNetworksSchema } from "../../src/gen/istio/mesh/v1alpha1/mesh_networks_pb.js";
import { ProxyConfig_ConnectionSettingsSchema, ProxyConfigSchema } from "../../src/gen/istio/mesh/v1alpha1/proxy_config_pb.js";
import { AuthenticationPolicy } from "../../src/gen/istio/mesh/v1alpha1/shared_pb.js";
import {
  ClientTLSSettingsSchema,
  LoadBalancerSettingsSchema,
  LocalityLoadBalancerSettingSchema,
  OutlierDetectionSchema,
  TrafficPolicySchema,
  ZoneAwareLoadBalancerSettingSchema,
} from "../../src/gen/istio/networking/v1alpha3/destination_rule_pb.js";
import { PortSchema, ServerSchema } from "../../src/gen/istio/networking/v1alpha3/gateway_pb.js";
import {
  ConnectionPoolSettingsSchema,
  DestinationSchema,
  ServerTLSSettingsSchema,
} from "../../src/gen/istio/networking/v1alpha3/shared_pb.js";
import {
  CorsPolicySchema,
  HTTPDirectResponseSchema,
  HTTPFaultInjection_AbortSchema,
  HTTPFaultInjection_DelaySchema,
  HTTPMatchRequestSchema,
  HTTPRedirectSchema,
  HTTPRetrySchema,
  HTTPRewriteSchema,
  HTTPRouteSchema,
  RegexRewriteSchema,
  RouteDestinationSchema,
} from "../../src/gen/istio/networking/v1alpha3/virtual_service_pb.js";
import { AccessLogging_FilterSchema } from "../../src/gen/istio/telemetry/v1alpha1/telemetry_pb.js";
import { celFault } from "../../src/model/cel-syntax.ts";
import type { ValidationCase } from "./validation-cases.ts";

/** Arguments of one case, read into what our checks take. */
class Args {
  readonly #args: Readonly<Record<string, unknown>>;
  readonly #report: Report;
  readonly place: Place;

  constructor(one: ValidationCase, report: Report) {
    this.#args = one.args ?? {};
    this.#report = report;
    this.place = placeOf(report, []);
  }

  text(name = "value"): string {
    return String(this.#args[name]);
  }

  number(): number {
    return Number(this.#args.value);
  }

  flag(name: string): boolean {
    return this.#args[name] === true;
  }

  texts(name: string): readonly string[] {
    return (this.#args[name] ?? []) as readonly string[];
  }

  /** A message; undefined where the case says null. */
  message<D extends DescMessage>(schema: D, name = "value"): MessageShape<D> | undefined {
    const json = this.#args[name];
    return json === null || json === undefined ? undefined : readMessage(schema, json, { report: this.#report, path: [name] });
  }

  messages<D extends DescMessage>(schema: D, name: string): readonly MessageShape<D>[] {
    return ((this.#args[name] ?? []) as readonly unknown[]).map((json, index) =>
      readMessage(schema, json, { report: this.#report, path: [name, index] }),
    );
  }
}

type Check = (args: Args) => void;

const value =
  (code: Parameters<Report>[0], fault: (text: string) => string | undefined): Check =>
  (args) =>
    args.place.check(code, fault(args.text()));

const number =
  (fault: (value: number) => string | undefined): Check =>
  (args) =>
    args.place.check("field.range", fault(args.number()));

/** A check of one message, which is skipped where the message is absent. */
const message =
  <D extends DescMessage>(schema: D, check: (message: MessageShape<D>, place: Place) => void): Check =>
  (args) => {
    const one = args.message(schema);
    if (one !== undefined) check(one, args.place);
  };

/** The corpus' names of checks, and which function of ours each one is. */
const CHECKS: Readonly<Record<string, Check>> = {
  FQDN: value("field.host", fqdnFault),
  TrustDomain: value("field.host", trustDomainFault),
  WildcardDomain: value("field.host", wildcardDomainFault),
  WildcardDomainForVirtualServiceBoundToGateway: (args) =>
    args.place.check("field.host", gatewayDomainFault(args.text("domain"), args.flag("isSni"))),
  IPAddress: value("field.invalid", addressFault),
  IPSubnet: value("field.invalid", subnetFault),
  Port: number(portFault),
  PortName: value("field.port", portNameFault),
  HTTPStatus: number(httpStatusFault),
  HTTPHeaderNameOrJwtClaimRoute: value("field.invalid", headerOrClaimFault),
  HTTPHeaderValue: value("field.invalid", headerValueFault),
  StrictHTTPHeaderName: value("field.invalid", strictHeaderNameFault),
  Duration: message(DurationSchema, (one, place) => place.check("field.range", durationFault(one))),
  ExportTo: (args) =>
    checkExportTo(
      args.texts("exportTo"),
      {
        namespace: args.text("configNamespace"),
        isServiceEntry: args.flag("isServiceEntry"),
        isSelected: args.flag("isDestinationRuleWithSelector"),
      },
      args.place,
    ),
  Localities: (args) => checkLocalities(args.texts("localities"), args.place),
  CORSPolicy: message(CorsPolicySchema, checkCors),
  ConnectionPool: message(ConnectionPoolSettingsSchema, checkConnectionPool),
  Destination: message(DestinationSchema, checkDestination),
  HTTPDirectResponse: message(HTTPDirectResponseSchema, checkDirectResponse),
  HTTPFaultInjectionAbort: message(HTTPFaultInjection_AbortSchema, checkAbort),
  HTTPFaultInjectionDelay: message(HTTPFaultInjection_DelaySchema, checkDelay),
  HTTPRetry: message(HTTPRetrySchema, checkHttpRetry),
  HTTPRewrite: message(HTTPRewriteSchema, checkRewrite),
  URIRegexRewrite: message(RegexRewriteSchema, checkRegexRewrite),
  OutlierDetection: message(OutlierDetectionSchema, checkOutlierDetection),
  TLSOptions: message(ServerTLSSettingsSchema, checkServerTls),
  TelemetryFilter: message(AccessLogging_FilterSchema, (one, place) => place.check("field.invalid", celFault(one.expression))),
  HTTPRedirect: (args) => {
    const redirect = args.message(HTTPRedirectSchema, "redirect");
    if (redirect !== undefined) checkRedirect(redirect, args.messages(HTTPMatchRequestSchema, "matches"), args.place);
  },
  HTTPRoute: (args) => {
    const route = args.message(HTTPRouteSchema, "route");
    if (route !== undefined)
      checkHttpRoute(route, { isDelegate: args.flag("isDelegate"), gatewayApi: args.flag("gatewayApiSemantics") }, args.place);
  },
  RouteDestinations: (args) =>
    checkDestinations(args.messages(RouteDestinationSchema, "routeDestinations"), args.flag("gatewayApiSemantics"), args.place),
  LoadBalancer: (args) => {
    const lb = args.message(LoadBalancerSettingsSchema, "loadBalancer");
    if (lb !== undefined) checkLoadBalancer(lb, args.message(OutlierDetectionSchema, "outlierDetection"), args.place);
  },
  LocalityLbSetting: (args) => {
    const lb = args.message(LocalityLoadBalancerSettingSchema, "localityLb");
    if (lb !== undefined) checkLocalityLb(lb, args.message(OutlierDetectionSchema, "outlierDetection"), args.place);
  },
  ZoneAwareLbSetting: (args) => {
    const lb = args.message(ZoneAwareLoadBalancerSettingSchema, "zoneAwareLb");
    if (lb !== undefined) checkZoneAwareLb(lb, args.message(OutlierDetectionSchema, "outlierDetection"), args.place);
  },
  Server: (args) => {
    const server = args.message(ServerSchema, "server");
    if (server !== undefined) checkServer(server, args.flag("gatewayApiSemantics"), args.place);
  },
  ServerPort: (args) => checkServerPort(args.message(PortSchema, "port"), args.text("bind"), args.place),
  TLS: (args) => {
    const tls = args.message(ClientTLSSettingsSchema, "settings");
    if (tls !== undefined) checkClientTls(tls, args.text("configNamespace"), args.place);
  },
  TrafficPolicy: (args) => {
    const policy = args.message(TrafficPolicySchema, "policy");
    if (policy !== undefined) checkTrafficPolicy(policy, args.text("configNamespace"), args.place);
  },
  ConnectTimeout: (args) => validateConnectTimeout(args.message(DurationSchema), args.place),
  DrainDuration: (args) => validateDrainDuration(args.message(DurationSchema), args.place),
  ProtocolDetectionTimeout: message(DurationSchema, (one, place) => place.check("field.range", protocolDetectionTimeoutFault(one))),
  MaxServerConnectionAge: (args) => {
    const duration = parseGoDuration(args.text());
    args.place.check("field.range", duration === undefined ? "not a duration" : maxConnectionAgeFault(millisOf(duration)));
  },
  ControlPlaneAuthPolicy: (args) => args.place.check("field.invalid", controlPlaneAuthPolicyFault(enumValue(args.text()))),
  ProxyAddress: value("field.invalid", proxyAddressFault),
  ConnectionSettings: message(ProxyConfig_ConnectionSettingsSchema, validateConnectionSettings),
  MeshConfig: message(MeshConfigSchema, validateMeshConfig),
  MeshConfigProxyConfig: message(ProxyConfigSchema, validateProxyConfig),
  MeshConfigDefaultTrafficPolicy: message(MeshConfig_DefaultTrafficPolicySchema, validateDefaultTrafficPolicy),
  MeshConfigDefaultInboundHTTPRetryPolicy: message(HTTPRetrySchema, validateInboundRetry),
  MeshNetworks: message(MeshNetworksSchema, validateMeshNetworks),
  ServiceSettings: message(MeshConfigSchema, validateServiceSettings),
  ExtensionProviderService: value("field.invalid", extensionServiceFault),
  ExtensionProviderEnvoyHTTPAls: message(MeshConfig_ExtensionProvider_EnvoyHttpGrpcV3LogProviderSchema, validateServiceAndPort),
  ExtensionProviderEnvoyTCPAls: message(MeshConfig_ExtensionProvider_EnvoyTcpGrpcV3LogProviderSchema, validateServiceAndPort),
  ExtensionProviderEnvoyOtelAls: message(MeshConfig_ExtensionProvider_EnvoyOpenTelemetryLogProviderSchema, validateServiceAndPort),
  ExtensionProviderTracingDatadog: message(MeshConfig_ExtensionProvider_DatadogTracingProviderSchema, validateServiceAndPort),
  ExtensionProviderTracingLightStep: message(MeshConfig_ExtensionProvider_LightstepTracingProviderSchema, validateLightstep),
  ExtensionProviderTracingOpenCensusAgent: message(
    MeshConfig_ExtensionProvider_OpenCensusAgentTracingProviderSchema,
    validateServiceAndPort,
  ),
  ExtensionProviderTracingOpentelemetry: message(MeshConfig_ExtensionProvider_OpenTelemetryTracingProviderSchema, validateOpenTelemetry),
  ExtensionProviderTracingZipkin: message(MeshConfig_ExtensionProvider_ZipkinTracingProviderSchema, validateServiceAndPort),
};

/** Runs the check a fragment names. False where we have none of that name. */
export function runFragment(one: ValidationCase, report: Report): boolean {
  const check = one.check === undefined ? undefined : CHECKS[one.check];
  check?.(new Args(one, report));
  return check !== undefined;
}

const enumValue = (text: string): AuthenticationPolicy =>
  text in AuthenticationPolicy ? AuthenticationPolicy[text as "NONE"] : (Number(text) as AuthenticationPolicy);
