import type { JsonValue } from "@bufbuild/protobuf";
import { HeaderValueOptionSchema } from "../../gen/envoy/config/core/v3/base_pb.js";
import { SubstitutionFormatStringSchema } from "../../gen/envoy/config/core/v3/substitution_format_string_pb.js";
import { FileAccessLogSchema } from "../../gen/envoy/extensions/access_loggers/file/v3/file_pb.js";
import { ExpressionFilterSchema } from "../../gen/envoy/extensions/access_loggers/filters/cel/v3/cel_pb.js";
import { HttpConnectionManager_TracingSchema } from "../../gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.js";
import { TcpProxy_TunnelingConfigSchema } from "../../gen/envoy/extensions/filters/network/tcp_proxy/v3/tcp_proxy_pb.js";
import { DescriptorSchema } from "../../gen/envoy/extensions/rate_limit_descriptors/expr/v3/expr_pb.js";
import { celFault } from "../../model/cel-syntax.ts";
import { formatFault, headerFormatFault } from "../../model/format-operators.ts";
import { at, type Fault } from "./fault.ts";
import { type MessageRule, messageRule } from "./message-rule.ts";

/** Texts in which Envoy puts values for operators (`%PROTOCOL%`), and those that are expressions. */
export const FORMAT_RULES: readonly MessageRule[] = [
  messageRule(HeaderValueOptionSchema, ({ append, appendAction, header }) => [
    append !== undefined && appendAction !== 0 && at("append", "cannot be combined with append_action"),
    wrongAt("header.value", headerFormatFault(header?.value ?? "")),
  ]),
  // Formatters bring operators of their own.
  messageRule(SubstitutionFormatStringSchema, ({ format, formatters }) => {
    if (formatters.length > 0) return [];
    switch (format.case) {
      case "textFormat":
        return [textFault("text_format", format.value)];
      case "textFormatSource":
        return [
          format.value.specifier.case === "inlineString" && textFault("text_format_source.inline_string", format.value.specifier.value),
        ];
      case "jsonFormat":
        return jsonFaults("json_format", format.value);
      default:
        return [];
    }
  }),
  messageRule(FileAccessLogSchema, ({ accessLogFormat: { case: kind, value } }) => {
    switch (kind) {
      case "format":
        return [textFault("format", value)];
      case "jsonFormat":
        return jsonFaults("json_format", value);
      case "typedJsonFormat":
        return jsonFaults("typed_json_format", value);
      default:
        return [];
    }
  }),
  messageRule(HttpConnectionManager_TracingSchema, ({ operation, upstreamOperation }) => [
    textFault("operation", operation),
    textFault("upstream_operation", upstreamOperation),
  ]),
  messageRule(ExpressionFilterSchema, ({ expression }) => [wrongAt("expression", celFault(expression))]),
  messageRule(DescriptorSchema, ({ exprSpecifier: { case: kind, value } }) => [kind === "text" && wrongAt("text", celFault(value))]),
  messageRule(TcpProxy_TunnelingConfigSchema, ({ hostname }) => [textFault("hostname", hostname)]),
];

const wrongAt = (path: string, reason: string | undefined): Fault | false => reason !== undefined && at(path, reason);

const textFault = (path: string, text: string): Fault | false => wrongAt(path, formatFault(text));

/** Each text in a value of JSON is a format. */
function jsonFaults(path: string, json: JsonValue): readonly (Fault | false)[] {
  if (typeof json === "string") return [textFault(path, json)];
  if (typeof json !== "object" || json === null) return [];
  return Object.entries(json).flatMap(([key, value]) => jsonFaults(`${path}.${key}`, value));
}
