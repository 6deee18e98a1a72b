import type { SchemaRule } from "../parse/schema-rules.ts";
import type { CelRule } from "./json-schema.ts";

/** A bound in the words of OpenAPI; numbers have some that our own reading leaves to validation. */
export interface SchemaBound extends SchemaRule {
  readonly minimum?: number;
  readonly maximum?: number;
  readonly validations?: readonly CelRule[];
}

/** Bounds by path below a message, as in `SchemaRules`. */
export type SchemaBounds = Readonly<Record<string, SchemaBound>>;

const NEEDS_DESTINATION: SchemaBounds = { "": { required: ["destination"] } };
const HEADER_NAME = /^[-_A-Za-z0-9]+$/;
const PERCENT: SchemaBound = { minimum: 0, maximum: 100 };
const NOT_NEGATIVE: SchemaBound = { minimum: 0 };
const LABEL_VALUE: SchemaBound = { maxLength: 63 };

const named = (field: string): SchemaBounds => ({ "": { required: [field] }, [field]: { minLength: 1 } });

/**
 * Bounds that Istio's definitions have on messages, wherever those are used. Our own reading finds the same faults when it validates, with a
 * sentence that says more; here they serve clusters in which the webhook is not in the way.
 */
export const MESSAGE_BOUNDS: Readonly<Record<string, SchemaBounds>> = {
  "istio.networking.v1alpha3.Destination": { "": { required: ["host"] } },
  "istio.networking.v1alpha3.HTTPRouteDestination": NEEDS_DESTINATION,
  "istio.networking.v1alpha3.HTTPMirrorPolicy": NEEDS_DESTINATION,
  "istio.networking.v1alpha3.RouteDestination": NEEDS_DESTINATION,
  "istio.networking.v1alpha3.HTTPDirectResponse": { "": { required: ["status"] } },
  "istio.networking.v1alpha3.TLSRoute": { "": { required: ["match"] } },
  "istio.networking.v1alpha3.TLSMatchAttributes": { "": { required: ["sniHosts"] } },
  "istio.networking.v1alpha3.DestinationRule": { "": { required: ["host"] } },
  "istio.networking.v1alpha3.Subset": { "": { required: ["name"] } },
  "istio.networking.v1alpha3.TrafficPolicy.TunnelSettings": { "": { required: ["targetHost", "targetPort"] } },
  "istio.networking.v1alpha3.TrafficPolicy.RetryBudget": { percent: PERCENT },
  "istio.networking.v1alpha3.LoadBalancerSettings.ConsistentHashLB.HTTPCookie": { "": { required: ["name"] } },
  "istio.networking.v1alpha3.LoadBalancerSettings.ConsistentHashLB.HTTPCookie.Attribute": { "": { required: ["name"] } },
  "istio.networking.v1alpha3.WarmupConfiguration": {
    "": { required: ["duration"] },
    minimumPercent: PERCENT,
    aggression: NOT_NEGATIVE,
  },
  "istio.networking.v1alpha3.ZoneAwareLoadBalancerSetting": { minClusterSize: { minimum: 1 } },
  "istio.networking.v1alpha3.OutlierDetection": { "outlierDetectionHttpErrorCodes[]": { minimum: 100, maximum: 599 } },
  "istio.networking.v1alpha3.Server": { "": { required: ["port", "hosts"] } },
  "istio.networking.v1alpha3.Port": { "": { required: ["number", "protocol", "name"] } },
  "istio.networking.v1alpha3.ServiceEntry": { "": { required: ["hosts"] }, hosts: { minItems: 1 }, ports: { uniqueBy: "name" } },
  "istio.networking.v1alpha3.ServicePort": { "": { required: ["number", "name"] } },
  "istio.networking.v1alpha3.WorkloadSelector": { "labels{}": LABEL_VALUE },
  "istio.networking.v1alpha3.WorkloadGroup": { "": { required: ["template"] } },
  "istio.networking.v1alpha3.ReadinessProbe": {
    initialDelaySeconds: NOT_NEGATIVE,
    timeoutSeconds: NOT_NEGATIVE,
    periodSeconds: NOT_NEGATIVE,
    successThreshold: NOT_NEGATIVE,
    failureThreshold: NOT_NEGATIVE,
  },
  "istio.networking.v1alpha3.HTTPHealthCheckConfig": { "": { required: ["port"] } },
  "istio.networking.v1alpha3.HTTPHeader": { name: { pattern: HEADER_NAME } },
  "istio.networking.v1alpha3.TCPHealthCheckConfig": { "": { required: ["port"] } },
  "istio.networking.v1alpha3.ExecHealthCheckConfig": { "": { required: ["command"] } },
  "istio.networking.v1alpha3.IstioEgressListener": { "": { required: ["hosts"] } },
  "istio.networking.v1alpha3.IstioIngressListener": { "": { required: ["port"] } },
  "istio.networking.v1beta1.ProxyConfig": { concurrency: NOT_NEGATIVE },
  "istio.type.v1beta1.WorkloadSelector": { "matchLabels{}": LABEL_VALUE },
  "istio.type.v1beta1.PortSelector": { "": { required: ["number"] }, number: { minimum: 1, maximum: 65_535 } },
  "istio.security.v1beta1.ClaimToHeader": {
    "": { required: ["header", "claim"] },
    header: { minLength: 1, pattern: HEADER_NAME },
    claim: { minLength: 1 },
  },
  "istio.security.v1beta1.JWTRule": { jwks_uri: { minLength: 1, maxLength: 2048 } },
  "istio.security.v1beta1.Condition": { "": { required: ["key"] } },
  "istio.telemetry.v1alpha1.Tracing": { randomSamplingPercentage: PERCENT },
  "istio.telemetry.v1alpha1.Tracing.Literal": named("value"),
  "istio.telemetry.v1alpha1.Tracing.Environment": named("name"),
  "istio.telemetry.v1alpha1.Tracing.RequestHeader": named("name"),
  "istio.telemetry.v1alpha1.Tracing.Formatter": named("value"),
  "istio.extensions.v1alpha1.WasmPlugin": { "": { required: ["url"] }, sha256: { pattern: /(^$|^[a-f0-9]{64}$)/ } },
  "istio.extensions.v1alpha1.WasmConfig": { "": { required: ["url"] }, sha256: { pattern: /(^$|^[a-f0-9]{64}$)/ } },
  "istio.extensions.v1alpha1.LuaConfig": { "": { required: ["inlineCode"] }, inlineCode: { minLength: 1, maxLength: 65_536 } },
};

/** Fields that may also be written under their names of protobuf, because people do; the API server would drop them otherwise. */
export const WRITTEN_AS_IN_PROTOBUF: ReadonlySet<string> = new Set([
  "istio.networking.v1alpha3.HTTPRoute.mirror_percent",
  "istio.security.v1beta1.JWTRule.jwks_uri",
]);
