import type { Message } from "@bufbuild/protobuf";
import { DurationSchema } from "@bufbuild/protobuf/wkt";
import { LONGEST_SECONDS } from "../../base/duration.ts";
import type { DataSource } from "../../gen/envoy/config/core/v3/base_pb.js";
import { ApiConfigSourceSchema, ApiVersion } from "../../gen/envoy/config/core/v3/config_source_pb.js";
import { HttpProtocolOptionsSchema } from "../../gen/envoy/config/core/v3/protocol_pb.js";
import { ZipkinConfigSchema } from "../../gen/envoy/config/trace/v3/zipkin_pb.js";
import { BasicAuthPerRouteSchema, BasicAuthSchema } from "../../gen/envoy/extensions/filters/http/basic_auth/v3/basic_auth_pb.js";
import { LuaSchema } from "../../gen/envoy/extensions/filters/http/lua/v3/lua_pb.js";
import { StringMatcherSchema } from "../../gen/envoy/type/matcher/v3/string_pb.js";
import { BOOTSTRAP_RULES } from "./bootstrap-rules.ts";
import { CLUSTER_RULES } from "./cluster-rules.ts";
import { at, type Fault } from "./fault.ts";
import { FORMAT_RULES } from "./format-rules.ts";
import { LISTENER_RULES } from "./listener-rules.ts";
import { isRepeated, type MessageRule, messageRule } from "./message-rule.ts";
import { ROUTE_RULES } from "./route-rules.ts";

/** A rule of Envoy 1.40 that our descriptors do not carry. */
const MOST_HEADERS_KB = 8192;

const OTHER_RULES: readonly MessageRule[] = [
  messageRule(DurationSchema, ({ seconds, nanos }) => [
    (seconds < 0n || nanos < 0) && at("", "must not be negative"),
    seconds > LONGEST_SECONDS && at("", "is longer than Envoy can count"),
  ]),
  messageRule(HttpProtocolOptionsSchema, ({ maxResponseHeadersKb = 1 }) => [
    (maxResponseHeadersKb < 1 || maxResponseHeadersKb > MOST_HEADERS_KB) &&
      at("max_response_headers_kb", `must be between 1 and ${MOST_HEADERS_KB}`),
  ]),
  messageRule(StringMatcherSchema, ({ matchPattern, ignoreCase }) => [
    ignoreCase && matchPattern.case === "safeRegex" && at("ignore_case", "has no effect on safe_regex"),
  ]),
  messageRule(ApiConfigSourceSchema, ({ apiType }) => [apiType === 0 && at("api_type", "must be set")]),
  messageRule(ZipkinConfigSchema, ({ collectorEndpointVersion }) => [
    collectorEndpointVersion === 0 && at("collector_endpoint_version", "must be set"),
  ]),
  messageRule(BasicAuthSchema, ({ users }) => [users === undefined && at("users", "must be set"), passwordFault(users)]),
  messageRule(BasicAuthPerRouteSchema, ({ users }) => [passwordFault(users)]),
  // The syntax of scripts is judged where patches are read: merging puts no two of them together.
  messageRule(LuaSchema, ({ inlineCode, defaultSourceCode }) => [
    inlineCode !== "" && defaultSourceCode !== undefined && at("inline_code", "cannot be combined with default_source_code"),
  ]),
];

/** Envoy knows one kind of hash, which is not the one that htpasswd writes unless it is asked to. */
function passwordFault(users: DataSource | undefined): Fault | false {
  if (users?.specifier.case !== "inlineString") return false;
  const lines = users.specifier.value.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  if (lines.some((line) => !/^[^:]+:\{SHA\}.{28}$/.test(line)))
    return at("users.inline_string", "must have lines such as user:{SHA}hash, as htpasswd -s writes them");
  return isRepeated(lines.map((line) => line.slice(0, line.indexOf(":")))) && at("users.inline_string", "must not repeat a user");
}

const byType = new Map(
  [...BOOTSTRAP_RULES, ...CLUSTER_RULES, ...LISTENER_RULES, ...ROUTE_RULES, ...FORMAT_RULES, ...OTHER_RULES].map((rule) => [
    rule.type,
    rule,
  ]),
);

/** What Envoy's code refuses in a message by itself although its API allows it. Only what people write by mistake is known here. */
export function ruleFaults(type: string, message: Message): readonly Fault[] {
  const isOld = "transportApiVersion" in message && message.transportApiVersion === ApiVersion.V2;
  const own = byType.get(type)?.faults(message) ?? [];
  return isOld ? [...own, at("transport_api_version", "must not be V2, which is gone")] : own;
}
