import type { Endpoint, ServiceInstance } from "../model/endpoint.ts";
import type { Service, ServiceRef } from "../model/service.ts";

/**
 * Services and endpoints as queries over stored objects, whatever source those came from. Every method is an engine query: calling it
 * inside another query records the read, equal answers keep their identity, and what did not change does not re-run readers.
 */
export interface Registry {
  /** Namespaces that declare at least one service, sorted. */
  namespaces(): readonly string[];
  /** Services declared in a namespace, sorted by host. References only: unchanged while services merely change their content. */
  servicesIn(namespace: string): readonly ServiceRef[];
  /** One service, undefined when it does not exist (the absence is recorded). */
  service(ref: ServiceRef): Service | undefined;
  /** All services that declare this host, in order of precedence (Kubernetes first, then older first). */
  servicesByHost(host: string): readonly ServiceRef[];
  /** Endpoints of one service port; order is stable. */
  endpoints(ref: ServiceRef, portNumber: number): readonly Endpoint[];
  /** Service accounts (SPIFFE ids without trust domain handling: `ns/sa`) of the endpoints of a service port, sorted. */
  serviceAccounts(ref: ServiceRef, portNumber: number): readonly string[];
  /** Service ports served at an address: what inbound configuration of the proxy there is made from. Sorted. */
  instancesAt(address: string, namespace: string): readonly ServiceInstance[];
  /** Labels, service account, locality, network of the workload at an address, where the registry knows it. */
  workloadAt(address: string, namespace: string): Workload | undefined;
  /** Pod/WorkloadEntry labels of a namespace that match a selector are looked up by `workloadAt`; node locality comes from Node objects. */
}

export interface Workload {
  readonly name: string;
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly serviceAccount: string;
  readonly network: string;
  readonly locality: import("../model/locality.ts").Locality;
  readonly nodeName: string;
}
