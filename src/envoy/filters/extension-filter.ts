import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { ApiVersion } from "../../gen/envoy/config/core/v3/config_source_pb.js";
import { type Filter, FilterSchema } from "../../gen/envoy/config/listener/v3/listener_components_pb.js";
import { LuaSchema } from "../../gen/envoy/extensions/filters/http/lua/v3/lua_pb.js";
import {
  type HttpFilter,
  HttpFilterSchema,
} from "../../gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.js";
import { anyOf } from "../../wire/encode.ts";

/** One extension (WasmPlugin, TrafficExtension) in a chain. Wasm is asked for by name (ECDS), since modules come and go; Lua is said in place. */
export interface ExtensionInput {
  readonly name: string;
  readonly code: "wasm" | { readonly lua: string };
}

/** Extensions of a connection manager or TCP chain by phase: before authentication, before authorization, and after both. */
export interface PhasedExtensions {
  readonly authn: readonly ExtensionInput[];
  readonly authz: readonly ExtensionInput[];
  readonly rest: readonly ExtensionInput[];
}

const ALLOWED = {
  http: ["envoy.extensions.filters.http.wasm.v3.Wasm", "envoy.extensions.filters.http.rbac.v3.RBAC"],
  network: ["envoy.extensions.filters.network.wasm.v3.Wasm", "envoy.extensions.filters.network.rbac.v3.RBAC"],
} as const;

/** A configuration that does not come must not keep a listener waiting for ever. */
const FETCH_TIMEOUT_MS = 5_000;

/** The agent may put a filter that denies in the place of a module it could not fetch: hence the second type. */
function discovered(kind: keyof typeof ALLOWED) {
  return {
    case: "configDiscovery",
    value: {
      configSource: {
        configSourceSpecifier: { case: "ads", value: {} },
        resourceApiVersion: ApiVersion.V3,
        initialFetchTimeout: durationFromMs(FETCH_TIMEOUT_MS),
      },
      typeUrls: ALLOWED[kind].map((type) => `type.googleapis.com/${type}`),
    },
  } as const;
}

/** An extension as an HTTP filter. */
export function httpExtension({ name, code }: ExtensionInput): HttpFilter {
  if (code === "wasm") return create(HttpFilterSchema, { name, configType: discovered("http") });
  const lua = create(LuaSchema, { defaultSourceCode: { specifier: { case: "inlineString", value: code.lua } } });
  return create(HttpFilterSchema, { name, configType: { case: "typedConfig", value: anyOf(LuaSchema, lua) } });
}

/** An extension as a network filter: Wasm only, Envoy has no Lua for connections. */
export const networkExtension = ({ name }: ExtensionInput): Filter => create(FilterSchema, { name, configType: discovered("network") });
