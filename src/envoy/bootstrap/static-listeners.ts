import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type Listener, ListenerSchema } from "../../gen/envoy/config/listener/v3/listener_pb.js";
import type { RouteSchema } from "../../gen/envoy/config/route/v3/route_components_pb.js";
import { HealthCheckSchema } from "../../gen/envoy/extensions/filters/http/health_check/v3/health_check_pb.js";
import { RouterSchema } from "../../gen/envoy/extensions/filters/http/router/v3/router_pb.js";
import {
  type HttpConnectionManager,
  HttpConnectionManagerSchema,
} from "../../gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.js";
import { anyOf } from "../../wire/encode.ts";

/** `/healthz/ready` answers as soon as Envoy has its first configuration: what a kubelet or a load balancer asks. */
export function readinessListener(port: number): Listener {
  const health = create(HealthCheckSchema, {
    passThroughMode: false,
    headers: [
      { name: ":path", headerMatchSpecifier: { case: "stringMatch", value: { matchPattern: { case: "exact", value: "/healthz/ready" } } } },
    ],
  });
  return httpListener("readiness", port, {
    filters: [{ name: "envoy.filters.http.health_check", config: anyOf(HealthCheckSchema, health) }],
    routes: [NOT_FOUND],
  });
}

export const PROMETHEUS_CLUSTER = "prometheus_stats";

/** Envoy's own metrics under `/stats/prometheus`, and nothing else of the admin interface, which stays on loopback. */
export function prometheusListener(port: number): Listener {
  const stats: RouteInit = {
    match: { pathSpecifier: { case: "prefix", value: "/stats/prometheus" } },
    action: { case: "route", value: { clusterSpecifier: { case: "cluster", value: PROMETHEUS_CLUSTER } } },
  };
  return httpListener(PROMETHEUS_CLUSTER, port, { filters: [], routes: [stats, NOT_FOUND] });
}

type RouteInit = MessageInitShape<typeof RouteSchema>;

const NOT_FOUND: RouteInit = {
  match: { pathSpecifier: { case: "prefix", value: "/" } },
  action: { case: "directResponse", value: { status: 404 } },
};

interface HttpListenerParts {
  readonly filters: readonly { readonly name: string; readonly config: ReturnType<typeof anyOf> }[];
  readonly routes: readonly RouteInit[];
}

function httpListener(name: string, port: number, parts: HttpListenerParts): Listener {
  const manager: HttpConnectionManager = create(HttpConnectionManagerSchema, {
    statPrefix: name,
    routeSpecifier: {
      case: "routeConfig",
      value: {
        virtualHosts: [{ name, domains: ["*"], routes: [...parts.routes] }],
      },
    },
    httpFilters: [
      ...parts.filters.map(({ name: filter, config }) => ({ name: filter, configType: { case: "typedConfig" as const, value: config } })),
      { name: "envoy.filters.http.router", configType: { case: "typedConfig", value: anyOf(RouterSchema, create(RouterSchema)) } },
    ],
  });
  const filter: NonNullable<MessageInitShape<typeof ListenerSchema>["filterChains"]>[number] = {
    filters: [
      {
        name: "envoy.filters.network.http_connection_manager",
        configType: { case: "typedConfig", value: anyOf(HttpConnectionManagerSchema, manager) },
      },
    ],
  };
  return create(ListenerSchema, {
    name,
    address: { address: { case: "socketAddress", value: { address: "0.0.0.0", portSpecifier: { case: "portValue", value: port } } } },
    filterChains: [filter],
  });
}
