import type { Istiod } from "./istiod.ts";
import { listening, type RunningProxy, startProxy } from "./proxy.ts";

/** A gateway for `edge.test` on a port, with these TLS settings, that leads to a server on a port of this machine. */
export const edgeObjects = ({ edge, web, tls }: { readonly edge: number; readonly web: number; readonly tls: string }): string => `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: web, namespace: shop}
spec:
  hosts: [web.test]
  location: MESH_EXTERNAL
  resolution: STATIC
  ports: [{number: 1, name: http, protocol: HTTP}]
  endpoints: [{address: 127.0.0.1, ports: {http: ${web}}}]
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge, namespace: shop}
spec:
  selector: {app: edge}
  servers: [{port: {number: ${edge}, name: https, protocol: HTTPS}, hosts: [edge.test], tls: ${tls}}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: edge, namespace: shop}
spec: {hosts: [edge.test], gateways: [edge], http: [{route: [{destination: {host: web.test, port: {number: 1}}}]}]}
`;

/** Starts the proxy of that gateway; resolves when it listens. */
export async function startEdge(istiod: Istiod, edge: number, metadata: Readonly<Record<string, string>> = {}): Promise<RunningProxy> {
  const proxy = await startProxy({
    xdsPort: istiod.grpcPort,
    type: "router",
    name: "edge",
    address: "127.0.0.8",
    labels: { app: "edge" },
    metadata,
  });
  await listening(edge);
  return proxy;
}
