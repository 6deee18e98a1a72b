/** The service that most tests call: one host, two versions. */
export const SHOP_HOST = "cart.shop.svc.cluster.local";

export interface ShopPorts {
  /** Where sidecars listen for it. */
  readonly service: number;
  readonly v1: number;
  readonly v2: number;
}

/** A ServiceEntry with one endpoint for each version, and subsets that name them. */
export function shopService({ service, v1, v2 }: ShopPorts, trafficPolicy = ""): string {
  return `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: cart, namespace: shop}
spec:
  hosts: [${SHOP_HOST}]
  addresses: [127.0.0.2]
  location: MESH_INTERNAL
  resolution: STATIC
  ports:
  - {number: ${service}, name: http, protocol: HTTP}
  endpoints:
  - {address: 127.0.0.1, ports: {http: ${v1}}, labels: {app: cart, version: v1}}
  - {address: 127.0.0.1, ports: {http: ${v2}}, labels: {app: cart, version: v2}}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: cart, namespace: shop}
spec:
  host: ${SHOP_HOST}
  ${trafficPolicy === "" ? "" : `trafficPolicy: ${trafficPolicy}`}
  subsets:
  - {name: v1, labels: {version: v1}}
  - {name: v2, labels: {version: v2}}
`;
}

/** A Gateway for a router labelled app=edge, open for every host. */
export function shopGateway(port: number): string {
  return `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge, namespace: shop}
spec:
  selector: {app: edge}
  servers:
  - {port: {number: ${port}, name: http, protocol: HTTP}, hosts: ["*"]}
`;
}

/** A VirtualService for the service, for sidecars and the gateway alike; `http` is YAML of its routes (indent by two). */
export function shopRoutes(http: string): string {
  return `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: cart, namespace: shop}
spec:
  hosts: [${SHOP_HOST}]
  gateways: [mesh, shop/edge]
  http:
${http}
`;
}

/** Routes that split all requests between the versions. */
export const weights = (v1: number, v2: number): string => `
  - route:
    - {destination: {host: ${SHOP_HOST}, subset: v1}, weight: ${v1}}
    - {destination: {host: ${SHOP_HOST}, subset: v2}, weight: ${v2}}`;

/** A route rule to one version with further fields in flow style, such as `match: [{uri: {prefix: /a}}]`. */
export const rule = (subset: string, ...fields: readonly string[]): string => `
  - ${[...fields, `route: [{destination: {host: ${SHOP_HOST}, subset: ${subset}}}]`].join("\n    ")}`;
