import type { Call } from "./calls.ts";
import { type Istiod, type IstiodOptions, startIstiod } from "./istiod.ts";
import { freePort } from "./ports.ts";
import { listening, type ProxyOptions, type RunningProxy, startProxy } from "./proxy.ts";

/** A server that stands behind the service of a test. */
export interface Backend {
  readonly port: number;
  readonly address?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly locality?: string;
  readonly weight?: number;
}

export interface ServiceMeshOptions {
  readonly backends: readonly Backend[];
  /** What the service's port speaks; HTTP where nothing is said. */
  readonly protocol?: string;
  /** `spec` of a DestinationRule for the service, but its host: YAML in flow style, without braces. */
  readonly rule?: string;
  /** Further documents. */
  readonly config?: string;
  readonly istiod?: IstiodOptions;
  readonly proxy?: Partial<ProxyOptions>;
}

export interface ServiceMesh {
  readonly istiod: Istiod;
  readonly proxy: RunningProxy;
  /** Where a client calls the service through its sidecar. */
  readonly target: Call;
}

export const SERVICE_HOST = "svc.example.com";

/** One service with the given servers behind it, and a client's sidecar in front: what a DestinationRule needs to show itself. */
export async function startServiceMesh(options: ServiceMeshOptions): Promise<ServiceMesh> {
  const port = await freePort();
  const istiod = await startIstiod({
    ...options.istiod,
    files: {
      "conf/service.yaml": serviceEntry(port, options),
      ...(options.rule !== undefined && { "conf/rule.yaml": destinationRule(options.rule) }),
      ...(options.config !== undefined && { "conf/more.yaml": options.config }),
      ...options.istiod?.files,
    },
  });
  const proxy = await startProxy({ name: "client", address: "127.0.0.9", ...options.proxy, xdsPort: istiod.grpcPort });
  await listening(port);
  return { istiod, proxy, target: { port, host: SERVICE_HOST } };
}

export const destinationRule = (spec: string): string =>
  `{apiVersion: networking.istio.io/v1, kind: DestinationRule, metadata: {name: svc, namespace: shop}, spec: {host: ${SERVICE_HOST}, ${spec}}}\n`;

export function serviceEntry(port: number, { backends, protocol = "HTTP" }: Pick<ServiceMeshOptions, "backends" | "protocol">): string {
  const endpoints = backends.map(({ port: server, address = "127.0.0.1", labels, locality, weight }) =>
    JSON.stringify({
      address,
      ports: { main: server },
      ...(labels !== undefined && { labels }),
      ...(locality !== undefined && { locality }),
      ...(weight !== undefined && { weight }),
    }),
  );
  return `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: svc, namespace: shop}
spec:
  hosts: [${SERVICE_HOST}]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: ${port}, name: main, protocol: ${protocol}}]
  endpoints: [${endpoints.join(", ")}]
`;
}
