import { create } from "@bufbuild/protobuf";
import type { Duration } from "@bufbuild/protobuf/wkt";
import { conditionFault, type LabelSelector } from "../../base/labels.ts";
import { isCurve } from "../../base/tls-parameters.ts";
import type { MeshConfig, MeshConfig_DefaultTrafficPolicy, MeshConfig_TLSConfig } from "../../gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import { OutlierDetectionSchema } from "../../gen/istio/networking/v1alpha3/destination_rule_pb.js";
import type { HTTPRetry } from "../../gen/istio/networking/v1alpha3/virtual_service_pb.js";
import { checkConnectionPool } from "../checks/connection-pool.ts";
import { durationFault, millisOf } from "../checks/duration.ts";
import { trustDomainFault, wildcardDomainFault } from "../checks/host-name.ts";
import { checkHttpRetry } from "../checks/http-retry.ts";
import { checkLocalityLb, checkZoneAwareLb } from "../checks/locality-weights.ts";
import { checkOutlierDetection } from "../checks/outlier-detection.ts";
import { type Place, placeOf } from "../checks/place.ts";
import { portFault } from "../checks/port.ts";
import { validateExtensionProviders } from "./validate-extension-provider.ts";
import { validateLogFormats } from "./validate-log-formats.ts";
import { validateProxyConfig } from "./validate-proxy-config.ts";

const HOUR_MS = 3_600_000;

/** A MeshConfig with defaults applied, by the rules of Istio's mesh validation. */
export function validateMeshConfig(mesh: MeshConfig, place: Place): void {
  place.in("proxyListenPort").check("field.port", portFault(mesh.proxyListenPort));
  // Zero is the usual one.
  if (mesh.proxyInboundListenPort !== 0) place.in("proxyInboundListenPort").check("field.port", portFault(mesh.proxyInboundListenPort));
  validateConnectTimeout(mesh.connectTimeout, place.in("connectTimeout"));
  if (mesh.protocolDetectionTimeout !== undefined) {
    place.in("protocolDetectionTimeout").check("field.range", protocolDetectionTimeoutFault(mesh.protocolDetectionTimeout));
  }
  if (mesh.defaultConfig === undefined) place.in("defaultConfig").fault("field.required", "must be set");
  else validateProxyConfig(mesh.defaultConfig, place.in("defaultConfig"));
  validateServiceSettings(mesh, place);
  validateSelectors(mesh, place);
  validateTrustDomains(mesh, place);
  validateTlsConfigs(mesh, place);
  validateBalancing(mesh, place);
  if (mesh.defaultTrafficPolicy !== undefined) validateDefaultTrafficPolicy(mesh.defaultTrafficPolicy, place.in("defaultTrafficPolicy"));
  // What is broken but unused, or ignored by proxies, harms nobody: Istio lets it pass too.
  const lenient = placeOf((_code, path, message) => place.in(...path).fault("field.ineffective", message), []);
  validateExtensionProviders(mesh.extensionProviders, lenient.in("extensionProviders"));
  validateLogFormats(mesh, lenient);
  if (mesh.defaultHttpRetryPolicy !== undefined) checkHttpRetry(mesh.defaultHttpRetryPolicy, lenient.in("defaultHttpRetryPolicy"));
}

/** Outlier detection is a matter of each DestinationRule: whether one will be there is not known here, so its absence is no fault. */
function validateBalancing(mesh: MeshConfig, place: Place): void {
  const outlier = create(OutlierDetectionSchema);
  if (mesh.localityLbSetting !== undefined) checkLocalityLb(mesh.localityLbSetting, outlier, place.in("localityLbSetting"));
  if (mesh.zoneAwareLbSetting !== undefined) checkZoneAwareLb(mesh.zoneAwareLbSetting, outlier, place.in("zoneAwareLbSetting"));
}

/** Limits and ejection for every destination, by the rules of a DestinationRule. */
export function validateDefaultTrafficPolicy(policy: MeshConfig_DefaultTrafficPolicy, place: Place): void {
  if (policy.connectionPool !== undefined) checkConnectionPool(policy.connectionPool, place.in("connectionPool"));
  if (policy.outlierDetection !== undefined) checkOutlierDetection(policy.outlierDetection, place.in("outlierDetection"));
}

/** Retries of a sidecar towards its own application: there is one endpoint, so settings that choose among several are idle. */
export function validateInboundRetry(retry: HTTPRetry, place: Place): void {
  checkHttpRetry(retry, place);
  for (const field of ["perTryTimeout", "retryRemoteLocalities", "retryIgnorePreviousHosts"] as const) {
    if (retry[field] !== undefined) place.in(field).fault("field.ineffective", "has no effect on inbound requests");
  }
}

/** The time a proxy gives a TCP connect: 1 ms to 1 h. */
export function validateConnectTimeout(timeout: Duration | undefined, place: Place): void {
  if (timeout === undefined) place.fault("field.required", "must be set");
  else place.check("field.range", durationFault(timeout) ?? (millisOf(timeout) > HOUR_MS ? "must be at most 1h" : undefined));
}

/** How long a proxy waits for the first bytes before it gives up guessing; zero means for ever. */
export function protocolDetectionTimeoutFault(timeout: Duration): string | undefined {
  if (millisOf(timeout) < 0) return "must not be negative";
  return timeout.nanos % 1_000_000 === 0 ? undefined : "must be a whole number of milliseconds";
}

/** How long a connection to the control plane may live. */
export const maxConnectionAgeFault = (millis: number): string | undefined =>
  millis > 0 ? undefined : "must be a positive duration such as 30m";

/** Hosts that settings apply to may be wildcards. */
export function validateServiceSettings(mesh: Pick<MeshConfig, "serviceSettings">, place: Place): void {
  for (const [index, { hosts }] of mesh.serviceSettings.entries()) {
    for (const [at, host] of hosts.entries())
      place.in("serviceSettings", index, "hosts", at).check("field.host", wildcardDomainFault(host));
  }
}

/** Selectors of namespaces. A wrong one would take nothing, and with it the mesh. */
function validateSelectors(mesh: Pick<MeshConfig, "discoverySelectors" | "serviceEntryVisibility">, place: Place): void {
  for (const [index, selector] of mesh.discoverySelectors.entries()) checkSelector(selector, place.in("discoverySelectors", index));
  for (const [index, { matchingRules }] of (mesh.serviceEntryVisibility?.policies ?? []).entries()) {
    for (const [at, { matcher }] of matchingRules.entries()) {
      const rule = place.in("serviceEntryVisibility", "policies", index, "matchingRules", at);
      if (matcher.case === "namespaceSelector") checkSelector(matcher.value, rule.in("namespaceSelector"));
    }
  }
}

function checkSelector({ matchExpressions }: LabelSelector, place: Place): void {
  for (const [index, condition] of matchExpressions.entries())
    place.in("matchExpressions", index).check("field.invalid", conditionFault(condition));
}

function validateTrustDomains(mesh: MeshConfig, place: Place): void {
  place.in("trustDomain").check("field.host", trustDomainFault(mesh.trustDomain));
  for (const [index, alias] of mesh.trustDomainAliases.entries())
    place.in("trustDomainAliases", index).check("field.host", trustDomainFault(alias));
  for (const [index, { certificateData }] of mesh.caCertificates.entries())
    if (certificateData.case === "spiffeBundleUrl")
      place
        .in("caCertificates", index, "spiffeBundleUrl")
        .fault("field.ineffective", "bundles are not fetched; give the certificates as pem");
}

function validateTlsConfigs(mesh: MeshConfig, place: Place): void {
  if ((mesh.meshMTLS?.ecdhCurves.length ?? 0) > 0)
    place.in("meshMTLS", "ecdhCurves").fault("field.invalid", "curves cannot be chosen inside the mesh");
  if (mesh.tlsDefaults !== undefined) validateCurves(mesh.tlsDefaults, place.in("tlsDefaults", "ecdhCurves"));
}

function validateCurves({ ecdhCurves }: MeshConfig_TLSConfig, place: Place): void {
  for (const [index, curve] of ecdhCurves.entries()) {
    if (!isCurve(curve))
      place.in(index).fault("field.ineffective", `${JSON.stringify(curve)} is not a curve that proxies know; it is left out`);
    else if (ecdhCurves.indexOf(curve) < index) place.in(index).fault("field.ineffective", `${curve} is listed twice`);
  }
}
