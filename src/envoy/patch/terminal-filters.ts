import type { Any } from "@bufbuild/protobuf/wkt";
import { typeNameOf } from "./merge-any.ts";

const NETWORK = "envoy.extensions.filters.network.";

/** Types of network filters that end a chain: Envoy refuses a listener where one of them is not the last, or where the last is none of them. */
export const TERMINAL_NETWORK_FILTERS: ReadonlySet<string> = new Set([
  `${NETWORK}http_connection_manager.v3.HttpConnectionManager`,
  `${NETWORK}tcp_proxy.v3.TcpProxy`,
  `${NETWORK}redis_proxy.v3.RedisProxy`,
  `${NETWORK}thrift_proxy.v3.ThriftProxy`,
  `${NETWORK}dubbo_proxy.v3.DubboProxy`,
  `${NETWORK}generic_proxy.v3.GenericProxy`,
  `${NETWORK}direct_response.v3.Config`,
  `${NETWORK}echo.v3.Echo`,
]);

/** The same for HTTP filters: the last one must answer requests or send them on. */
export const TERMINAL_HTTP_FILTERS: ReadonlySet<string> = new Set([
  "envoy.extensions.filters.http.router.v3.Router",
  "envoy.extensions.filters.http.mcp_router.v3.McpRouter",
]);

/** Filters that may be either, which only Envoy knows. */
const UNDECIDED = /\.(dynamic_modules|reverse_tunnel|wasm|match_delegate|composite|common)\./;

/** A filter of either kind. */
export interface AnyFilter {
  readonly name: string;
  readonly configType:
    | { readonly case: "typedConfig"; readonly value: Any }
    | { readonly case: string | undefined; readonly value?: unknown };
}

export function isTerminal(filter: AnyFilter, terminal: ReadonlySet<string>): boolean {
  const { configType } = filter;
  return configType.case === "typedConfig" && terminal.has(typeNameOf(configType.value as Any));
}

/** Whether a filter is known to need another one after it. */
export function isPassing(filter: AnyFilter, terminal: ReadonlySet<string>): boolean {
  const { configType } = filter;
  if (configType.case !== "typedConfig") return false;
  const type = typeNameOf(configType.value as Any);
  return type.startsWith("envoy.extensions.filters.") && !terminal.has(type) && !UNDECIDED.test(type);
}

/** Where something added to the end of the list goes: before the filter that must stay the last. */
export function endOf(list: readonly AnyFilter[], terminal: ReadonlySet<string>): number {
  const last = list.at(-1);
  return last !== undefined && isTerminal(last, terminal) ? list.length - 1 : list.length;
}
