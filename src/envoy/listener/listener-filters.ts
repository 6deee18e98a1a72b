import { create } from "@bufbuild/protobuf";
import {
  type ListenerFilter,
  type ListenerFilterChainMatchPredicate,
  ListenerFilterChainMatchPredicateSchema,
  ListenerFilterSchema,
} from "../../gen/envoy/config/listener/v3/listener_components_pb.js";
import { HttpInspectorSchema } from "../../gen/envoy/extensions/filters/listener/http_inspector/v3/http_inspector_pb.js";
import { OriginalDstSchema } from "../../gen/envoy/extensions/filters/listener/original_dst/v3/original_dst_pb.js";
import { OriginalSrcSchema } from "../../gen/envoy/extensions/filters/listener/original_src/v3/original_src_pb.js";
import { ProxyProtocolSchema } from "../../gen/envoy/extensions/filters/listener/proxy_protocol/v3/proxy_protocol_pb.js";
import { TlsInspectorSchema } from "../../gen/envoy/extensions/filters/listener/tls_inspector/v3/tls_inspector_pb.js";
import { anyOf } from "../../wire/encode.ts";

/** On which connections an inspector looks at the first bytes. It costs a server-first protocol a wait, so it is kept to where it is needed. */
export type Inspected =
  | { readonly on: "all" }
  /** All but connections to these ports. */
  | { readonly on: "allBut"; readonly ports: readonly number[] }
  /** Only connections to these ports. */
  | { readonly on: "only"; readonly ports: readonly number[] };

/** What happens to a connection before its filter chain is chosen. Absent parts are left out. */
export interface ListenerFiltersInput {
  readonly proxyProtocol?: boolean;
  readonly originalDestination?: boolean;
  /** Keep the client's address towards the application (TPROXY). */
  readonly originalSource?: boolean;
  readonly tls?: Inspected;
  readonly http?: Inspected;
}

/** Mark on sockets with a borrowed source address, so that the host's rules can tell them apart; Istio's value. */
const ORIGINAL_SOURCE_MARK = 1337;

/** Most TLS greetings fit; starting small keeps the memory of idle connections low. */
const FIRST_READ_BYTES = 512;

/** Listener filters in the order they must run: the PROXY header precedes everything, TLS is told before HTTP, which is not looked for inside it. */
export function listenerFilters(input: ListenerFiltersInput): ListenerFilter[] {
  const tls = create(TlsInspectorSchema, { initialReadBufferSize: FIRST_READ_BYTES });
  return [
    ...(input.proxyProtocol === true ? [filter("proxy_protocol", anyOf(ProxyProtocolSchema, create(ProxyProtocolSchema)))] : []),
    ...(input.originalDestination === true ? [filter("original_dst", anyOf(OriginalDstSchema, create(OriginalDstSchema)))] : []),
    ...(input.originalSource === true
      ? [filter("original_src", anyOf(OriginalSrcSchema, create(OriginalSrcSchema, { mark: ORIGINAL_SOURCE_MARK })))]
      : []),
    ...(input.tls !== undefined ? [filter("tls_inspector", anyOf(TlsInspectorSchema, tls), input.tls)] : []),
    ...(input.http !== undefined ? [filter("http_inspector", anyOf(HttpInspectorSchema, create(HttpInspectorSchema)), input.http)] : []),
  ];
}

function filter(shortName: string, typedConfig: ReturnType<typeof anyOf>, inspected: Inspected = { on: "all" }): ListenerFilter {
  const filterDisabled = disabledOn(inspected);
  return create(ListenerFilterSchema, {
    name: `envoy.filters.listener.${shortName}`,
    configType: { case: "typedConfig", value: typedConfig },
    ...(filterDisabled !== undefined && { filterDisabled }),
  });
}

function disabledOn(inspected: Inspected): ListenerFilterChainMatchPredicate | undefined {
  if (inspected.on === "all") return undefined;
  const ports = toPorts(inspected.ports);
  if (inspected.on === "allBut") return ports;
  const rule = ports === undefined ? ({ case: "anyMatch", value: true } as const) : ({ case: "notMatch", value: ports } as const);
  return create(ListenerFilterChainMatchPredicateSchema, { rule });
}

function toPorts(ports: readonly number[]): ListenerFilterChainMatchPredicate | undefined {
  const each = ports.map((port) =>
    create(ListenerFilterChainMatchPredicateSchema, { rule: { case: "destinationPortRange", value: { start: port, end: port + 1 } } }),
  );
  return each.length < 2 ? each[0] : create(ListenerFilterChainMatchPredicateSchema, { rule: { case: "orMatch", value: { rules: each } } });
}
