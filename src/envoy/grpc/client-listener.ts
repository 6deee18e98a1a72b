import { create } from "@bufbuild/protobuf";
import { ApiVersion } from "../../gen/envoy/config/core/v3/config_source_pb.js";
import { type Listener, ListenerSchema } from "../../gen/envoy/config/listener/v3/listener_pb.js";
import { HttpConnectionManagerSchema } from "../../gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.js";
import { anyOf } from "../../wire/encode.ts";
import { FAULT_FILTER, ROUTER_FILTER } from "./http-filters.ts";

/** A name that gRPC clients dial (`xds:///host:port`) and the route table that says where its calls go. */
export interface GrpcTargetInput {
  readonly name: string;
  readonly routes: string;
  /** Address of the service: nobody listens there, but tools show it. */
  readonly address: string;
  readonly port: number;
}

/** Builds the API listener of a target: gRPC asks for it by the name it dials (gRFC A27). */
export function buildGrpcTarget({ name, routes, address, port }: GrpcTargetInput): Listener {
  const manager = create(HttpConnectionManagerSchema, {
    httpFilters: [FAULT_FILTER, ROUTER_FILTER],
    routeSpecifier: {
      case: "rds",
      value: {
        routeConfigName: routes,
        configSource: { configSourceSpecifier: { case: "ads", value: {} }, resourceApiVersion: ApiVersion.V3 },
      },
    },
  });
  return create(ListenerSchema, {
    name,
    address: { address: { case: "socketAddress", value: { address, portSpecifier: { case: "portValue", value: port } } } },
    apiListener: { apiListener: anyOf(HttpConnectionManagerSchema, manager) },
  });
}
