import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { TypedExtensionConfig } from "../../../gen/envoy/config/core/v3/extension_pb.js";
import { TypedExtensionConfigSchema } from "../../../gen/envoy/config/core/v3/extension_pb.js";
import { type Permission, PermissionSchema } from "../../../gen/envoy/config/rbac/v3/rbac_pb.js";
import { UriTemplateMatchConfigSchema } from "../../../gen/envoy/extensions/path/match/uri_template/v3/uri_template_match_pb.js";
import { anyOf } from "../../../wire/encode.ts";
import { addressRange } from "./address-range.ts";
import { demandsOf } from "./demands.ts";
import { matchHeader } from "./header-match.ts";
import { matchMetadata, metadataValue } from "./metadata-match.ts";
import type { AttributeMatch, PermissionAttribute } from "./rbac-input.ts";
import { matchText, parsePattern } from "./text-pattern.ts";

const permission = (rule: NonNullable<MessageInitShape<typeof PermissionSchema>["rule"]>): Permission => create(PermissionSchema, { rule });

const ANY = permission({ case: "any", value: true });
const not = (rule: Permission): Permission => permission({ case: "notRule", value: rule });

/** What no request is. */
export const NO_PERMISSION: Permission = not(ANY);

/** One operation of a rule: all of its demands, or anything where there are none. */
export function operationPermission(matches: readonly AttributeMatch<PermissionAttribute>[]): Permission {
  const rules = matches.flatMap((match) => demandsOf(match, isOneOf, not));
  return permission({ case: "andRules", value: { rules: rules.length > 0 ? rules : [ANY] } });
}

function isOneOf(attribute: PermissionAttribute, values: readonly string[]): Permission {
  if (attribute.kind === "metadata") {
    return permission({ case: "metadata", value: matchMetadata(attribute.filter, [attribute.key], metadataValue(values)) });
  }
  const { kind } = attribute;
  return permission({ case: "orRules", value: { rules: values.map((value) => is(kind, value)) } });
}

function is(kind: Exclude<PermissionAttribute["kind"], "metadata">, value: string): Permission {
  switch (kind) {
    // Host names have no case (RFC 3986); methods and paths do.
    case "host":
      return permission({ case: "header", value: matchHeader(":authority", value, { ignoreCase: true }) });
    case "method":
      return permission({ case: "header", value: matchHeader(":method", value) });
    case "path":
      return isTemplate(value)
        ? permission({ case: "uriTemplate", value: uriTemplate(value) })
        : permission({ case: "urlPath", value: { rule: { case: "path", value: matchText(parsePattern(value)) } } });
    case "port":
      return permission({ case: "destinationPort", value: Number(value) });
    case "destinationAddress":
      return permission({ case: "destinationIp", value: addressRange(value) });
    case "serverName":
      return permission({ case: "requestedServerName", value: matchText(parsePattern(value)) });
  }
}

const isTemplate = (path: string): boolean => path.includes("{*}") || path.includes("{**}");

/** Istio writes `{*}` for one segment and `{**}` for many, Envoy the bare stars. */
function uriTemplate(path: string): TypedExtensionConfig {
  const config = create(UriTemplateMatchConfigSchema, { pathTemplate: path.replaceAll("{*}", "*").replaceAll("{**}", "**") });
  return create(TypedExtensionConfigSchema, { name: "uri-template", typedConfig: anyOf(UriTemplateMatchConfigSchema, config) });
}
