/** Ports of everything the demo runs, all on loopback. */
export interface DemoPorts {
  readonly v1: number;
  readonly v2: number;
  /** Where the client's sidecar listens for calls to the service. */
  readonly sidecar: number;
  /** Where the gateway listens. */
  readonly gateway: number;
}

/** The service that both versions answer for. */
export const DEMO_HOST = "echo.demo.svc.cluster.local";

/** The services: one host with two versions, and a gateway in front. */
export function demoServices(ports: DemoPorts): string {
  return `# The services of the demo. The control plane reads every file in this directory; edit and watch.
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: echo, namespace: demo}
spec:
  hosts: [${DEMO_HOST}]
  addresses: [127.0.0.2]
  location: MESH_INTERNAL
  resolution: STATIC
  ports:
  - {number: ${ports.sidecar}, name: http, protocol: HTTP}
  endpoints:
  - {address: 127.0.0.1, ports: {http: ${ports.v1}}, labels: {app: echo, version: v1}}
  - {address: 127.0.0.1, ports: {http: ${ports.v2}}, labels: {app: echo, version: v2}}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: echo, namespace: demo}
spec:
  host: ${DEMO_HOST}
  subsets:
  - {name: v1, labels: {version: v1}}
  - {name: v2, labels: {version: v2}}
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge, namespace: demo}
spec:
  selector: {app: edge}
  servers:
  - {port: {number: ${ports.gateway}, name: http, protocol: HTTP}, hosts: ["*"]}
`;
}

/** The rule people are asked to edit. */
export const DEMO_ROUTES = `# Change the weights, save, and watch the counts move.
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: echo, namespace: demo}
spec:
  hosts: [${DEMO_HOST}, echo.example.com]
  gateways: [mesh, demo/edge]
  http:
  - route:
    - destination: {host: ${DEMO_HOST}, subset: v1}
      weight: 90
    - destination: {host: ${DEMO_HOST}, subset: v2}
      weight: 10
`;
