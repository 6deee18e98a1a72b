import type { DescMessage, JsonObject } from "@bufbuild/protobuf";
import { quote } from "../../../base/quote.ts";
import { BootstrapSchema } from "../../../gen/envoy/config/bootstrap/v3/bootstrap_pb.js";
import { ClusterSchema } from "../../../gen/envoy/config/cluster/v3/cluster_pb.js";
import { TypedExtensionConfigSchema } from "../../../gen/envoy/config/core/v3/extension_pb.js";
import { FilterChainSchema, FilterSchema, ListenerFilterSchema } from "../../../gen/envoy/config/listener/v3/listener_components_pb.js";
import { ListenerSchema } from "../../../gen/envoy/config/listener/v3/listener_pb.js";
import { RouteSchema, VirtualHostSchema } from "../../../gen/envoy/config/route/v3/route_components_pb.js";
import { RouteConfigurationSchema } from "../../../gen/envoy/config/route/v3/route_pb.js";
import { HttpFilterSchema } from "../../../gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.js";
import {
  EnvoyFilter_ApplyTo as ApplyTo,
  EnvoyFilter_Patch_Operation as Operation,
  type EnvoyFilter_Patch as Patch,
} from "../../../gen/istio/networking/v1alpha3/envoy_filter_pb.js";
import type { Place } from "../../checks/place.ts";
import { readMessage } from "../../parse/read-message.ts";
import { isRecord } from "../../parse/reading.ts";

/** The message a patch is one of. */
export const PATCHED: Readonly<Partial<Record<ApplyTo, DescMessage>>> = {
  [ApplyTo.LISTENER]: ListenerSchema,
  [ApplyTo.FILTER_CHAIN]: FilterChainSchema,
  [ApplyTo.NETWORK_FILTER]: FilterSchema,
  [ApplyTo.HTTP_FILTER]: HttpFilterSchema,
  [ApplyTo.LISTENER_FILTER]: ListenerFilterSchema,
  [ApplyTo.ROUTE_CONFIGURATION]: RouteConfigurationSchema,
  [ApplyTo.VIRTUAL_HOST]: VirtualHostSchema,
  [ApplyTo.HTTP_ROUTE]: RouteSchema,
  [ApplyTo.CLUSTER]: ClusterSchema,
  [ApplyTo.EXTENSION_CONFIG]: TypedExtensionConfigSchema,
  [ApplyTo.BOOTSTRAP]: BootstrapSchema,
};
const ADDING: ReadonlySet<Operation> = new Set([
  Operation.ADD,
  Operation.INSERT_BEFORE,
  Operation.INSERT_AFTER,
  Operation.INSERT_FIRST,
  Operation.REPLACE,
]);
const FILTER_CONFIG: readonly string[] = ["typed_config", "typedConfig", "config_discovery", "configDiscovery"];
/** Message types that upstream Envoy has: its own from v3 on, and those it shares with others. */
const ENVOY_TYPE = /\/(?:envoy\..*\.v[3-9]\w*\.|(?:udpa|xds|google|opentelemetry|opencensus)\.)/;
/** Types of Istio's build of Envoy. */
const ISTIO_TYPE = /\/(?:istio|stats)\./;

/** The content of a patch must fit the message it goes into. Fields we have no descriptor for may be newer than we are, so they only warn. */
export function checkPatchValue(patch: Patch, applyTo: ApplyTo, place: Place): void {
  const schema = PATCHED[applyTo];
  const value = patch.value;
  if (schema === undefined || value === undefined) return;
  readMessage(schema, value, {
    report: (code, path, message) => place.in(...path).fault(code, message),
    path: [],
    unknownField: "field.ineffective",
    anyContent: "unread",
  });
  checkTypes(value, place);
  if (isUntypedFilter(value, applyTo) && ADDING.has(patch.operation))
    place.fault("field.deprecated", "Envoy finds filters by the type of typed_config, no longer by name");
}

/** Envoy refuses a whole resource for one type it does not have. */
function checkTypes(json: unknown, place: Place): void {
  if (Array.isArray(json)) for (const [index, item] of json.entries()) checkTypes(item, place.in(index));
  if (!isRecord(json)) return;
  const type = json["@type"];
  if (typeof type === "string" && ISTIO_TYPE.test(type))
    place.in("@type").fault("field.ineffective", `upstream Envoy does not have ${quote(type)}`);
  else if (typeof type === "string" && !ENVOY_TYPE.test(type))
    place.in("@type").fault("field.invalid", `${quote(type)} is not a type of Envoy's v3 API`);
  for (const [key, value] of Object.entries(json)) if (typeof value === "object") checkTypes(value, place.in(key));
}

const isUntypedFilter = (value: JsonObject, applyTo: ApplyTo): boolean =>
  (applyTo === ApplyTo.HTTP_FILTER || applyTo === ApplyTo.NETWORK_FILTER) && !FILTER_CONFIG.some((name) => Object.hasOwn(value, name));
