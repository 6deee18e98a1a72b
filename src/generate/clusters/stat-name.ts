import type { Service } from "../../model/service.ts";

export interface StatNameParts {
  readonly service: Pick<Service, "host" | "name" | "namespace" | "source">;
  readonly subset: string;
  readonly port: { readonly name: string; readonly number: number };
  /** Port on the workload; 0 where a client does not know it. */
  readonly targetPort: number;
}

/**
 * Name of a cluster in statistics by a pattern of the mesh (MeshConfig `inboundClusterStatName`, `outboundClusterStatName`). The semicolon
 * at the end keeps dots in the name from being taken for the end of it.
 */
export function statName(pattern: string, { service, subset, port, targetPort }: StatNameParts): string {
  const kubernetes = service.source === "Kubernetes";
  const values: Readonly<Record<string, string>> = {
    SERVICE: kubernetes ? `${service.name}.${service.namespace}` : service.host,
    SERVICE_NAME: kubernetes ? service.name : service.host,
    SERVICE_FQDN: service.host,
    SERVICE_PORT: String(port.number),
    SERVICE_PORT_NAME: port.name,
    TARGET_PORT: String(targetPort),
    SUBSET_NAME: subset,
  };
  return `${pattern.replace(/%([A-Z_]+)%/g, (whole, key: string) => values[key] ?? whole)};`;
}
