import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { FilterSchema } from "../../gen/envoy/config/listener/v3/listener_components_pb.js";
import { type Listener, ListenerSchema } from "../../gen/envoy/config/listener/v3/listener_pb.js";
import { HttpConnectionManagerSchema } from "../../gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.js";
import { anyOf } from "../../wire/encode.ts";
import type { PolicyFilters } from "../filters/policy-filters.ts";
import { ROUTER_FILTER, underOwnNames } from "./http-filters.ts";
import { serverTls } from "./provided-tls.ts";

/** All that decides what a gRPC server is told about one address it listens on. */
export interface GrpcServerInput {
  readonly name: string;
  readonly address: string;
  readonly port: number;
  /** Clients must show a certificate of the mesh; else they must not speak TLS. */
  readonly mutualTls: boolean;
  /** Who may call what; absent = anybody. */
  readonly policies?: PolicyFilters;
}

/** Builds the listener of a gRPC server (gRFC A36): one chain that takes all connections and answers calls itself. */
export function buildGrpcServer({ name, address, port, mutualTls, policies }: GrpcServerInput): Listener {
  const kind = mutualTls ? "mtls" : "plaintext";
  return create(ListenerSchema, {
    name,
    address: { address: { case: "socketAddress", value: { address, portSpecifier: { case: "portValue", value: port } } } },
    filterChains: [
      {
        name: `inbound-${kind}`,
        filters: [answering(policies)],
        ...(mutualTls && { transportSocket: serverTls() }),
      },
    ],
  });
}

function answering(policies: PolicyFilters | undefined): MessageInitShape<typeof FilterSchema> {
  const manager = create(HttpConnectionManagerSchema, {
    httpFilters: [...underOwnNames([...(policies?.custom ?? []), ...(policies?.authorization ?? [])]), ROUTER_FILTER],
    routeSpecifier: {
      case: "routeConfig",
      value: {
        name: "inbound",
        virtualHosts: [
          {
            name: "inbound",
            domains: ["*"],
            routes: [{ match: { pathSpecifier: { case: "prefix", value: "/" } }, action: { case: "nonForwardingAction", value: {} } }],
          },
        ],
      },
    },
  });
  return {
    name: "envoy.filters.network.http_connection_manager",
    configType: { case: "typedConfig", value: anyOf(HttpConnectionManagerSchema, manager) },
  };
}
