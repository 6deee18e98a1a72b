import type { Endpoint, ServiceInstance } from "../model/endpoint.ts";
import type { Locality } from "../model/locality.ts";
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
  /**
   * Endpoints of one service port, in a stable order: as written in the object, or by name of the workload. Those that are not healthy are
   * among them: whoever sends endpoints decides what to do with them.
   */
  endpoints(ref: ServiceRef, portNumber: number): readonly Endpoint[];
  /** Service accounts (SPIFFE ids without trust domain handling: `ns/sa`) of the endpoints of a service port, sorted. */
  serviceAccounts(ref: ServiceRef, portNumber: number): readonly string[];
  /**
   * Service ports served at an address: what inbound configuration of the proxy there is made from. Sorted by host and port. Only services
   * of the given namespace: another namespace cannot make a workload serve something.
   */
  instancesAt(address: string, namespace: string, hint?: WorkloadHint): readonly ServiceInstance[];
  /** The workload at an address: a Pod, a WorkloadEntry or an endpoint written into a ServiceEntry, in this order; undefined where none is known. */
  workloadAt(address: string, namespace: string, hint?: WorkloadHint): Workload | undefined;
  /** Whether it is another cluster of the mesh, whose objects are known here. */
  isRemote(cluster: string): boolean;
}

/** What tells workloads apart where an address does not. */
export interface WorkloadHint {
  /** Several clusters may use one address: where the workload is; "" is here. */
  readonly cluster?: string;
  /** Name of its pod: those on the network of their node share an address, and of one that has just come no address may be known yet. */
  readonly pod?: string;
  /** What its proxy says of it (a `PodClaim` as text), where nothing else is known. */
  readonly claim?: string;
}

/** Who runs at an address. */
export interface Workload {
  readonly name: string;
  readonly namespace: string;
  /** Its own labels and those that say where it runs (region, zone, cluster, network). */
  readonly labels: Readonly<Record<string, string>>;
  readonly serviceAccount: string;
  readonly network: string;
  readonly locality: Locality;
  readonly nodeName: string;
}
