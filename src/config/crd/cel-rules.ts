import type { CelRule } from "./json-schema.ts";

/** Rules by path below a message, as in `SchemaBounds`. */
export type CelRules = Readonly<Record<string, readonly CelRule[]>>;

const rule = (message: string, expression: string): CelRule => ({ rule: expression, message });

/** How many of some fields are set. */
const set = (...fields: readonly string[]): string => fields.map((field) => `(has(self.${field}) ? 1 : 0)`).join(" + ");

const PORT = rule("port must be between 1-65535", "0 < self && self <= 65535");
const ONE_TARGET = (...fields: readonly string[]): CelRule =>
  rule("only one of targetRefs or selector can be set", `${set("selector", ...fields)} <= 1`);
const UNIX = "self.startsWith('unix://')";
const HTTP_URL = rule("url must have scheme http:// or https://", "self.startsWith('http://') || self.startsWith('https://')");
const MODULE_URL = rule(
  "url must have schema one of [http, https, file, oci]",
  "self.matches(r'^([^\\s%#]|%[0-9A-Fa-f]{2})+$') && (!self.contains('://') || self.matches(r'^(?i:http|https|file|oci)://'))",
);

/** Durations that may be of any length, or none. */
export const ANY_DURATION: ReadonlySet<string> = new Set([
  "istio.networking.v1alpha3.TrafficPolicy.RetryBudget.budgetInterval",
  "istio.networking.v1alpha3.LoadBalancerSettings.ConsistentHashLB.HTTPCookie.ttl",
  "istio.networking.v1alpha3.ConnectionPoolSettings.TCPSettings.idleTimeout",
]);

/** The rule for all other durations. */
export const DURATION_RULE: CelRule = rule("must be a valid duration greater than 1ms", "duration(self) >= duration('1ms')");

/**
 * What a schema alone cannot say, for clusters in which the webhook is not in the way. The messages are those that Istio's definitions give,
 * since people search for them; the expressions are ours, and say what our own validation says.
 */
export const MESSAGE_RULES: Readonly<Record<string, CelRules>> = {
  "istio.type.v1beta1.WorkloadSelector": {
    matchLabels: [
      rule("wildcard not allowed in label key match", "self.all(key, !key.contains('*'))"),
      rule("key must not be empty", "self.all(key, key != '')"),
    ],
    "matchLabels{}": [rule("wildcard not allowed in label value match", "!self.contains('*')")],
  },
  "istio.type.v1beta1.PolicyTargetReference": {
    namespace: [rule("cross namespace referencing is not currently supported", "self == ''")],
  },
  "istio.networking.v1alpha3.WorkloadSelector": {
    "labels{}": [rule("wildcard is not supported in selector", "!self.contains('*')")],
  },
  "istio.networking.v1alpha3.EnvoyFilter": {
    "": [rule("only one of targetRefs or workloadSelector can be set", `${set("workloadSelector", "targetRefs")} <= 1`)],
  },
  "istio.networking.v1alpha3.EnvoyFilter.EnvoyConfigObjectMatch": {
    "": [
      rule(
        "only support waypointMatch when context is WAYPOINT",
        // short, since there may be very many of them: what a rule may cost is multiplied by that
        "has(self.waypoint) == (has(self.context) && self.context == 'WAYPOINT')",
      ),
    ],
  },
  "istio.networking.v1alpha3.EnvoyFilter.WaypointMatch": { portNumber: [PORT] },
  "istio.networking.v1alpha3.ServerTLSSettings": {
    "": [
      rule("only one of credentialNames or tlsCertificates can be set", `${set("credentialNames", "tlsCertificates")} <= 1`),
      rule("only one of credentialName or credentialNames can be set", `${set("credentialName", "credentialNames")} <= 1`),
      rule("only one of credentialName or tlsCertificates can be set", `${set("credentialName", "tlsCertificates")} <= 1`),
    ],
  },
  "istio.networking.v1alpha3.ServiceEntry": {
    "": [
      rule("only one of WorkloadSelector or Endpoints can be set", `${set("workloadSelector", "endpoints")} <= 1`),
      rule(
        "CIDR addresses are allowed only for NONE/STATIC resolution types",
        "!has(self.addresses) || !has(self.resolution) || self.resolution in ['NONE', 'STATIC'] || !self.addresses.exists(one, one.contains('/'))",
      ),
      rule("NONE mode cannot set endpoints", "!has(self.endpoints) || (has(self.resolution) && self.resolution != 'NONE')"),
      rule(
        "DNS_ROUND_ROBIN mode cannot have multiple endpoints",
        "!has(self.endpoints) || !has(self.resolution) || self.resolution != 'DNS_ROUND_ROBIN' || self.endpoints.size() <= 1",
      ),
    ],
    "hosts[]": [rule("hostname cannot be wildcard", "self != '*'")],
    ports: [rule("port number cannot be duplicated", "self.all(one, self.exists_one(other, other.number == one.number))")],
  },
  "istio.networking.v1alpha3.ServicePort": { number: [PORT], targetPort: [PORT] },
  "istio.networking.v1alpha3.WorkloadEntry": {
    "": [rule("UDS may not include ports", "!has(self.address) || !self.address.startsWith('unix://') || !has(self.ports)")],
    address: [
      rule("UDS must be an absolute path or abstract socket", `!${UNIX} || self.matches('^unix://[/@]')`),
      rule("UDS may not be a dir", `!${UNIX} || !self.endsWith('/')`),
    ],
    ports: [rule("port name must be valid", "self.all(key, key.size() <= 63 && key.matches('^[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?$'))")],
    "ports{}": [PORT],
  },
  "istio.networking.v1alpha3.HTTPHealthCheckConfig": {
    port: [PORT],
    scheme: [rule("scheme must be one of [HTTP, HTTPS]", "self in ['', 'HTTP', 'HTTPS']")],
  },
  "istio.networking.v1alpha3.TCPHealthCheckConfig": { port: [PORT] },
  "istio.networking.v1alpha3.GrpcHealthCheckConfig": { port: [PORT] },
  "istio.security.v1beta1.AuthorizationPolicy": { "": [ONE_TARGET("targetRef", "targetRefs")] },
  "istio.security.v1beta1.Source": {
    "": [
      rule(
        "Cannot set serviceAccounts with namespaces or principals",
        `${set("serviceAccounts", "notServiceAccounts")} == 0 || ${set("principals", "notPrincipals", "namespaces", "notNamespaces")} == 0`,
      ),
    ],
  },
  "istio.security.v1beta1.RequestAuthentication": { "": [ONE_TARGET("targetRef", "targetRefs")] },
  "istio.security.v1beta1.JWTRule": {
    "": [rule("only one of jwks or jwksUri can be set", `${set("jwks", "jwksUri", "jwks_uri")} <= 1`)],
    jwksUri: [HTTP_URL],
    jwks_uri: [HTTP_URL],
  },
  "istio.security.v1beta1.PeerAuthentication": {
    "": [
      rule(
        "portLevelMtls requires selector",
        "!has(self.portLevelMtls) || (has(self.selector) && has(self.selector.matchLabels) && self.selector.matchLabels.size() > 0)",
      ),
    ],
    portLevelMtls: [rule(PORT.message, "self.all(key, 0 < int(key) && int(key) <= 65535)")],
  },
  "istio.telemetry.v1alpha1.Telemetry": { "": [ONE_TARGET("targetRef", "targetRefs")] },
  "istio.telemetry.v1alpha1.MetricsOverrides.TagOverride": {
    "": [
      rule(
        "value must be set when operation is UPSERT",
        "(has(self.operation) && self.operation == 'REMOVE') || (has(self.value) && self.value != '')",
      ),
      rule("value must not be set when operation is REMOVE", "!has(self.operation) || self.operation != 'REMOVE' || !has(self.value)"),
    ],
  },
  "istio.extensions.v1alpha1.WasmPlugin": { "": [ONE_TARGET("targetRef", "targetRefs")], url: [MODULE_URL] },
  "istio.extensions.v1alpha1.WasmConfig": { url: [MODULE_URL] },
  "istio.extensions.v1alpha1.EnvVar": {
    "": [rule("value may only be set when valueFrom is INLINE", "!has(self.value) || !has(self.valueFrom) || self.valueFrom == 'INLINE'")],
  },
  "istio.extensions.v1alpha1.TrafficExtension": {
    "": [ONE_TARGET("targetRefs"), rule("exactly one of wasm or lua must be set", "has(self.wasm) != has(self.lua)")],
  },
};

const ADDRESS = rule("Address is required", "has(self.address) || has(self.network)");

/** Rules that hold for a message in some kinds only, by path below the spec. The template of a WorkloadGroup is no workload yet. */
export const KIND_RULES: Readonly<Record<string, CelRules>> = {
  WorkloadEntry: { "": [ADDRESS] },
  ServiceEntry: { "endpoints[]": [ADDRESS] },
};
