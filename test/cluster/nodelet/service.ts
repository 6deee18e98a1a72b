import type { KubeObject } from "../kube-object.ts";

/** A Service, as far as the node routes to it and answers for its name. */
export interface Service extends KubeObject {
  readonly spec: {
    readonly type?: "ClusterIP" | "NodePort" | "LoadBalancer" | "ExternalName";
    readonly clusterIP?: string;
    readonly clusterIPs?: readonly string[];
    readonly externalIPs?: readonly string[];
    readonly externalName?: string;
    readonly loadBalancerClass?: string;
    readonly publishNotReadyAddresses?: boolean;
    readonly ports?: readonly ServicePort[];
  };
  readonly status?: { readonly loadBalancer?: { readonly ingress?: readonly { readonly ip?: string }[] } };
}

export interface ServicePort {
  readonly name?: string;
  readonly port: number;
  readonly protocol?: "TCP" | "UDP" | "SCTP";
  readonly nodePort?: number;
}

export interface EndpointSlice extends KubeObject {
  readonly addressType: "IPv4" | "IPv6" | "FQDN";
  readonly endpoints?: readonly Endpoint[] | null;
  readonly ports?: readonly { readonly name?: string; readonly port?: number; readonly protocol?: string }[] | null;
}

export interface Endpoint {
  readonly addresses: readonly string[];
  readonly hostname?: string;
  readonly conditions?: { readonly ready?: boolean; readonly serving?: boolean; readonly terminating?: boolean };
}

/** All Services and endpoints of the cluster, as last seen. */
export interface ServiceState {
  readonly services: readonly Service[];
  readonly slices: readonly EndpointSlice[];
}

/** The slices of a Service in IPv4. */
export function slicesOf({ slices }: ServiceState, { metadata }: Service): readonly EndpointSlice[] {
  return slices.filter(
    (slice) =>
      slice.addressType === "IPv4" &&
      slice.metadata.namespace === metadata.namespace &&
      slice.metadata.labels?.["kubernetes.io/service-name"] === metadata.name,
  );
}

/** Endpoints to send to: the ready ones, else those that are ending and still answer. */
export function usable(endpoints: readonly Endpoint[]): readonly Endpoint[] {
  const ready = endpoints.filter(({ conditions }) => conditions?.ready !== false);
  return ready.length > 0 ? ready : endpoints.filter(({ conditions }) => conditions?.serving === true && conditions.terminating === true);
}
