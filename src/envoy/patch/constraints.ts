import {
  type DescField,
  type DescMessage,
  type DescOneof,
  fromBinary,
  getOption,
  isFieldSet,
  isMessage,
  type Message,
  type Registry,
} from "@bufbuild/protobuf";
import { type Any, AnySchema, isWrapperDesc } from "@bufbuild/protobuf/wkt";
import { MetadataSchema } from "../../gen/envoy/config/core/v3/base_pb.js";
import { RegexMatcherSchema } from "../../gen/envoy/type/matcher/v3/regex_pb.js";
import { disabled, type FieldRules, required, rules } from "../../gen/validate/validate_pb.js";
import type { Fault } from "./fault.ts";
import { typeNameOf } from "./merge-any.ts";
import { ruleFaults } from "./message-rules.ts";
import { regexFault } from "./regex.ts";
import { scalarFault } from "./scalar-rules.ts";

/**
 * What in a message breaks the rules that Envoy's API carries (protoc-gen-validate), messages inside `Any` included: Envoy refuses a whole
 * resource for one of them. Only rules that are in use there are known here; a rule that is not known counts as kept.
 */
export function constraintFaults(schema: DescMessage, message: Message, registry: Registry): readonly Fault[] {
  const faults: Fault[] = [];
  checkMessage(schema, message as unknown as Fields, { path: "", registry, faults });
  return faults;
}

type Fields = Readonly<Record<string, unknown>>;

interface Walk {
  readonly path: string;
  readonly registry: Registry;
  readonly faults: Fault[];
}

interface FieldCheck {
  readonly field: DescField;
  readonly rules: FieldRules | undefined;
}

interface MessageChecks {
  readonly fields: readonly FieldCheck[];
  /** One of whose fields must be set. */
  readonly oneofs: readonly DescOneof[];
}

const known = new WeakMap<DescMessage, MessageChecks>();

/** The fields of a message that can be wrong: those with rules, and those with messages inside. Envoy keeps what metadata hold and asks nothing of it. */
function checksOf(schema: DescMessage): MessageChecks {
  let checks = known.get(schema);
  if (checks === undefined) {
    const off = getOption(schema, disabled) || schema.typeName === MetadataSchema.typeName;
    const fields = schema.fields
      .map((field) => ({ field, rules: optionOf(field) }))
      .filter(({ field, rules: own }) => own !== undefined || field.message !== undefined);
    checks = off ? { fields: [], oneofs: [] } : { fields, oneofs: schema.oneofs.filter((oneof) => getOption(oneof, required)) };
    known.set(schema, checks);
  }
  return checks;
}

/** Rules in our descriptors that Envoy 1.40 has given up or loosened. */
const GIVEN_UP: ReadonlySet<string> = new Set([
  "envoy.config.accesslog.v3.ResponseFlagFilter.flags",
  "envoy.config.core.v3.KeyValueAppend.entry",
  "envoy.config.core.v3.QuicKeepAliveSettings.initial_interval",
  "envoy.config.core.v3.QuicKeepAliveSettings.max_interval",
  "envoy.config.core.v3.QuicProtocolOptions.idle_network_timeout",
  "envoy.config.core.v3.RuntimeDouble.runtime_key",
  "envoy.config.core.v3.RuntimeFeatureFlag.runtime_key",
  "envoy.config.core.v3.RuntimePercent.runtime_key",
  "envoy.config.core.v3.RuntimeUInt32.runtime_key",
  "envoy.config.trace.v3.ZipkinConfig.collector_cluster",
  "envoy.config.trace.v3.ZipkinConfig.collector_endpoint",
  "envoy.extensions.access_loggers.open_telemetry.v3.OpenTelemetryAccessLogConfig.common_config",
  "envoy.extensions.common.dynamic_forward_proxy.v3.DnsCacheConfig.dns_query_timeout",
  "envoy.extensions.common.ratelimit.v3.RateLimitDescriptor.Entry.value",
  "envoy.extensions.filters.http.adaptive_concurrency.v3.GradientControllerConfig.MinimumRTTCalculationParams.interval",
  "envoy.extensions.filters.http.ext_authz.v3.ExtAuthzPerRoute.disabled",
  "envoy.extensions.filters.http.ext_proc.v3.ExternalProcessor.grpc_service",
  "envoy.extensions.filters.http.on_demand.v3.OnDemandCds.source",
  "envoy.extensions.filters.network.http_connection_manager.v3.Rds.config_source",
  "envoy.extensions.geoip_providers.common.v3.CommonGeoipProviderConfig.geo_headers_to_add",
  "envoy.extensions.network.dns_resolver.cares.v3.CaresDnsResolverConfig.resolvers",
  "envoy.extensions.transport_sockets.http_11_proxy.v3.Http11ProxyUpstreamTransport.transport_socket",
]);

function optionOf(field: DescField): FieldRules | undefined {
  if (GIVEN_UP.has(`${field.parent.typeName}.${field.name}`)) return undefined;
  const own = getOption(field, rules);
  return own.type.case === undefined && own.message === undefined ? undefined : own;
}

function checkMessage(schema: DescMessage, message: Fields, walk: Walk): void {
  if (schema.typeName === RegexMatcherSchema.typeName) checkRegex(message, walk);
  for (const { path, reason } of ruleFaults(schema.typeName, message as unknown as Message)) fault(inside(walk, path), reason);
  const { fields, oneofs } = checksOf(schema);
  for (const oneof of oneofs) {
    const choice = message[oneof.localName] as { readonly case: string | undefined };
    if (choice.case === undefined) fault(walk, `must have one of ${oneof.fields.map(({ name }) => name).join(", ")}`);
  }
  for (const check of fields) checkField(check, message, walk);
}

function checkRegex({ regex }: Fields, walk: Walk): void {
  const reason = typeof regex === "string" ? regexFault(regex) : undefined;
  if (reason !== undefined) fault(inside(walk, "regex"), reason);
}

function checkField({ field, rules: own }: FieldCheck, message: Fields, walk: Walk): void {
  const at = inside(walk, field.name);
  const value = fieldOf(field, message);
  switch (field.fieldKind) {
    case "list": {
      const list = value as readonly unknown[];
      const ruled = own?.type.case === "repeated" ? own.type.value : undefined;
      if (ruled !== undefined && list.length < ruled.minItems) fault(at, `must have at least ${ruled.minItems} items`);
      if (ruled !== undefined && ruled.maxItems > 0n && list.length > ruled.maxItems)
        fault(at, `must have at most ${ruled.maxItems} items`);
      if (ruled?.unique === true && new Set(list).size < list.length) fault(at, "must not repeat an item");
      for (const [index, item] of list.entries())
        checkValue(field, { value: item, rules: ruled?.items }, { ...at, path: `${at.path}[${index}]` });
      return;
    }
    case "map": {
      const entries = Object.entries(value as Fields);
      const ruled = own?.type.case === "map" ? own.type.value : undefined;
      if (ruled !== undefined && entries.length < ruled.minPairs) fault(at, `must have at least ${ruled.minPairs} entries`);
      for (const [key, item] of entries) checkValue(field, { value: item, rules: ruled?.values }, inside(at, key));
      return;
    }
    default: {
      if (field.oneof !== undefined && value === undefined) return;
      if (field.message !== undefined && !isFieldSet(message as unknown as Message, field)) {
        if (isDemanded(own)) fault(at, "must be set");
        return;
      }
      checkValue(field, { value, rules: own }, at);
    }
  }
}

const isDemanded = (own: FieldRules | undefined): boolean =>
  own?.message?.required === true ||
  ((own?.type.case === "duration" || own?.type.case === "any" || own?.type.case === "timestamp") && own.type.value.required === true);

interface Ruled {
  readonly value: unknown;
  readonly rules: FieldRules | undefined;
}

function checkValue(field: DescField, { value, rules: own }: Ruled, at: Walk): void {
  const reason = own === undefined ? undefined : scalarFault(own, value, field.enum);
  if (reason !== undefined) fault(at, reason);
  const schema = field.message;
  if (schema === undefined || own?.message?.skip === true || isWrapperDesc(schema)) return;
  if (isMessage(value, AnySchema)) checkAny(value, at);
  else if (isMessage(value, schema)) checkMessage(schema, value as unknown as Fields, at);
}

/** Looks into an `Any` of a type we know. Bytes that are no such message are a fault as well. */
function checkAny(any: Any, at: Walk): void {
  const schema = at.registry.getMessage(typeNameOf(any));
  if (schema === undefined) return;
  try {
    checkMessage(schema, fromBinary(schema, any.value) as unknown as Fields, at);
  } catch {
    fault(at, `is not a ${schema.typeName}`);
  }
}

function fieldOf(field: DescField, message: Fields): unknown {
  if (field.oneof === undefined) return message[field.localName];
  const choice = message[field.oneof.localName] as { readonly case: string | undefined; readonly value?: unknown };
  return choice.case === field.localName ? choice.value : undefined;
}

const inside = (walk: Walk, name: string): Walk =>
  name === "" ? walk : { ...walk, path: walk.path === "" ? name : `${walk.path}.${name}` };

const fault = ({ path, faults }: Walk, reason: string): void => void faults.push({ path, reason });
