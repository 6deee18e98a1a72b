import { create } from "@bufbuild/protobuf";
import type { Any } from "@bufbuild/protobuf/wkt";
import { HTTPFaultSchema } from "../../gen/envoy/extensions/filters/http/fault/v3/fault_pb.js";
import { RouterSchema } from "../../gen/envoy/extensions/filters/http/router/v3/router_pb.js";
import {
  type HttpFilter,
  HttpFilterSchema,
} from "../../gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.js";
import { anyOf } from "../../wire/encode.ts";

const filter = (name: string, typedConfig: Any): HttpFilter =>
  create(HttpFilterSchema, { name, configType: { case: "typedConfig", value: typedConfig } });

/** Does nothing by itself: routes say which calls are delayed or aborted (gRFC A33). */
export const FAULT_FILTER = filter("envoy.filters.http.fault", anyOf(HTTPFaultSchema, create(HTTPFaultSchema)));

/** Ends every chain: gRPC refuses a listener without it (gRFC A39). */
export const ROUTER_FILTER = filter("envoy.filters.http.router", anyOf(RouterSchema, create(RouterSchema)));

/** Filters under names of their own: gRPC refuses a listener that has a name twice. */
export const underOwnNames = (filters: readonly HttpFilter[]): readonly HttpFilter[] =>
  filters.map((one, index) => {
    const same = filters.slice(0, index).filter(({ name }) => name === one.name).length;
    return same === 0 ? one : create(HttpFilterSchema, { ...one, name: `${one.name}.${same + 1}` });
  });
