import type { JsonObject } from "@bufbuild/protobuf";
import type { KindDef } from "../../kind-def.ts";
import { startReading } from "../../parse/reading.ts";
import { readJsonObject } from "../../parse/well-known-readers.ts";

type Names = Pick<KindDef, "kind" | "plural" | "singular"> & Partial<Pick<KindDef, "writtenKind" | "versions" | "shortNames" | "scope">>;

/** A kind of the Gateway API. Its spec is kept as it was written: the API server has judged it, and conversion reads what it needs. */
function gatewayApiKind(names: Names): KindDef<JsonObject> {
  return {
    group: "gateway.networking.k8s.io",
    versions: ["v1", "v1beta1"],
    shortNames: [],
    scope: "Namespaced",
    body: "spec",
    ...names,
    parse(body, report) {
      const reading = startReading({ report, path: ["spec"], unknownField: undefined, anyContent: "refuse" });
      return body === undefined || body === null ? {} : ((readJsonObject(body, reading) ?? {}) as JsonObject);
    },
    validate: () => {},
  };
}

/** All kinds of the Gateway API that are read. */
export const GATEWAY_API_KINDS: readonly KindDef<JsonObject>[] = [
  gatewayApiKind({ kind: "GatewayClass", plural: "gatewayclasses", singular: "gatewayclass", shortNames: ["gc"], scope: "Cluster" }),
  gatewayApiKind({ kind: "KubernetesGateway", writtenKind: "Gateway", plural: "gateways", singular: "gateway", shortNames: ["gtw"] }),
  gatewayApiKind({ kind: "HTTPRoute", plural: "httproutes", singular: "httproute" }),
  gatewayApiKind({ kind: "GRPCRoute", plural: "grpcroutes", singular: "grpcroute", versions: ["v1"] }),
  gatewayApiKind({ kind: "TLSRoute", plural: "tlsroutes", singular: "tlsroute", versions: ["v1", "v1alpha3", "v1alpha2"] }),
  gatewayApiKind({ kind: "TCPRoute", plural: "tcproutes", singular: "tcproute", versions: ["v1", "v1alpha2"] }),
  gatewayApiKind({ kind: "UDPRoute", plural: "udproutes", singular: "udproute", versions: ["v1", "v1alpha2"] }),
  gatewayApiKind({ kind: "ListenerSet", plural: "listenersets", singular: "listenerset", shortNames: ["lset"], versions: ["v1"] }),
  gatewayApiKind({ kind: "ReferenceGrant", plural: "referencegrants", singular: "referencegrant", shortNames: ["refgrant"] }),
  gatewayApiKind({
    kind: "BackendTLSPolicy",
    plural: "backendtlspolicies",
    singular: "backendtlspolicy",
    shortNames: ["btlspolicy"],
    versions: ["v1", "v1alpha3"],
  }),
];
