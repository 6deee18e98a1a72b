import type { Locality } from "./locality.ts";
import type { ServiceRef } from "./service.ts";

/** Whether calls go there. `draining` and `terminating` keep the calls they have. */
export type Health = "healthy" | "unhealthy" | "draining" | "terminating";

/** One address of one port of a service, or of a workload. */
export interface Endpoint {
  /** IP address, DNS name (DNS resolutions) or path of a Unix socket (`unix://` removed, `unixPath` set). */
  readonly address: string;
  readonly unixPath: boolean;
  /** Port on the workload; 0 for Unix sockets. */
  readonly port: number;
  /** Port of the service this endpoint serves. */
  readonly servicePort: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly namespace: string;
  readonly workload: string;
  readonly serviceAccount: string;
  readonly network: string;
  readonly clusterId: string;
  readonly nodeName: string;
  readonly hostname: string;
  readonly subdomain: string;
  readonly locality: Locality;
  readonly weight: number;
  /** "istio" when the workload takes mutual TLS (label security.istio.io/tlsMode), else "disabled". */
  readonly tlsMode: "istio" | "disabled";
  readonly health: Health;
  /** Other addresses of the same workload, each an endpoint too: a pod has one of each family. Absent for nearly all. */
  readonly twins?: readonly string[];
  /** Key of the object it was made from, for provenance in debug output. */
  readonly objectKey: string;
}

/** A service port that a workload at some address serves: what inbound configuration is made from. */
export interface ServiceInstance {
  readonly service: ServiceRef;
  readonly servicePort: { readonly name: string; readonly number: number };
  readonly endpoint: Endpoint;
}
