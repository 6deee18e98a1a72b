import { fromBinary } from "@bufbuild/protobuf";
import { HealthStatus } from "../../src/gen/envoy/config/core/v3/health_check_pb.js";
import { ClusterLoadAssignmentSchema } from "../../src/gen/envoy/config/endpoint/v3/endpoint_pb.js";
import { ENDPOINT_TYPE } from "../../src/wire/type-urls.ts";
import type { Istiod } from "./istiod.ts";
import { type Answer, subscribe } from "./xds-subscriber.ts";

/** A group that machines register with, and the service that all of its members serve. */
export const CART_GROUP = `
apiVersion: networking.istio.io/v1
kind: WorkloadGroup
metadata: {name: carts, namespace: shop}
spec:
  metadata: {labels: {app: cart}}
  template: {serviceAccount: cart, ports: {http: 8080}, locality: r1/z1}
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: cart, namespace: shop}
spec:
  hosts: [cart.shop.test]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}]
  workloadSelector: {labels: {app: cart}}
`;

/** Node metadata of a machine that registers with the group. */
export const CART_MEMBER = { AUTO_REGISTER_GROUP: "carts", SERVICE_ACCOUNT: "cart" };

/** What a client of the service is told of its endpoints, one answer after another. */
export const watchCarts = ({ grpcPort }: Istiod): readonly Answer[] =>
  subscribe({
    port: grpcPort,
    variant: "delta",
    node: { id: "sidecar~127.0.0.1~client.shop~shop.svc.cluster.local" },
    typeUrl: ENDPOINT_TYPE,
    names: ["outbound|80||cart.shop.test"],
  });

/** Members of the service in one answer, sorted: address and port, and which of them are ill. */
export const membersIn = ({ resources }: Pick<Answer, "resources">): readonly string[] =>
  resources
    .flatMap(({ value }) => fromBinary(ClusterLoadAssignmentSchema, value).endpoints)
    .flatMap(({ lbEndpoints }) => lbEndpoints)
    .map(({ hostIdentifier, healthStatus }) => {
      const socket = hostIdentifier.case === "endpoint" ? hostIdentifier.value.address?.address : undefined;
      const at = socket?.case === "socketAddress" ? `${socket.value.address}:${socket.value.portSpecifier.value}` : "";
      return `${at}${healthStatus === HealthStatus.UNHEALTHY ? " ill" : ""}`;
    })
    .sort();

/** Those of the last answer that said anything. */
export const latestMembers = (answers: readonly Answer[]): string => {
  const last = answers.findLast(({ resources }) => resources.length > 0);
  return last === undefined ? "nothing" : membersIn(last).join(", ");
};
