import { readLabels } from "../../src/agent/metrics/label-text.ts";
import { type RunningAgent, startAgentProcess } from "./agent.ts";
import { meshBelieving, tokenFor } from "./agent-mesh.ts";
import { type EchoServer, httpEcho, tcpEcho } from "./echo.ts";
import { grpcEcho } from "./grpc-echo.ts";
import { rootOf } from "./identity.ts";
import { type Istiod, startIstiod } from "./istiod.ts";
import { freePort } from "./ports.ts";
import { listening } from "./proxy.ts";
import { createIssuer } from "./tokens.ts";

export interface Ports {
  readonly http: number;
  readonly tcp: number;
  readonly grpc: number;
}

/** A client, a gateway and a server with an agent and an Envoy each, and a service that speaks HTTP on one port, gRPC on another and anything on a third. */
export interface MeteredMesh {
  readonly istiod: Istiod;
  readonly client: RunningAgent;
  readonly server: RunningAgent;
  /** In front of the service, on a port of its own. */
  readonly gateway: RunningAgent;
  readonly gatewayPort: number;
  readonly app: EchoServer;
  /** Ports of the client's Envoy that stand for the service's. */
  readonly ports: Ports;
  /** Where the server's Envoy takes requests from the network. */
  readonly ingress: { readonly address: string; readonly http: number };
}

export const CART = "cart.shop.svc.cluster.local";
const SERVER = "127.0.0.21";
/** What connections on the loopback interface come from: the look-up of the client's address finds it. */
const CLIENT = "127.0.0.1";

const annotated = (annotations: Readonly<Record<string, string>>): Readonly<Record<string, string>> => ({
  ISTIO_METAJSON_ANNOTATIONS: JSON.stringify(
    Object.fromEntries(Object.entries(annotations).map(([name, value]) => [`sidecar.istio.io/${name}`, value])),
  ),
});

/** Histograms are up to date after a second; the client's Envoy drops series that are not in use for five. */
export async function startMeteredMesh(): Promise<MeteredMesh> {
  const issuer = createIssuer("https://id.example.com");
  const [app, raw, calls] = [await httpEcho("cart"), await tcpEcho("cart"), await grpcEcho("cart")];
  const ports = { http: await freePort(), tcp: await freePort(), grpc: await freePort() };
  const ingress = { http: await freePort(SERVER), tcp: await freePort(SERVER), grpc: await freePort(SERVER) };
  const gatewayPort = await freePort();
  const istiod = await startIstiod({
    files: {
      "mesh.yaml": meshBelieving(issuer),
      "conf/cart.yaml": config({ ports, ingress, gatewayPort, apps: { http: app.port, tcp: raw.port, grpc: calls.port } }),
    },
  });
  const shared = { istiod: `127.0.0.1:${istiod.securePort}`, root: await rootOf(istiod) };
  const [server, client, gateway] = await Promise.all(
    [
      {
        name: "cart-pod",
        account: "cart",
        address: SERVER,
        labels: { app: "cart", version: "v2" },
        env: annotated({ statsFlushInterval: "1s" }),
      },
      {
        name: "web-pod",
        account: "web",
        address: CLIENT,
        labels: { app: "web" },
        env: annotated({ statsFlushInterval: "1s", statsEvictionInterval: "5s" }),
      },
      { name: "edge-pod", account: "edge", address: "127.0.0.31", labels: { app: "edge" }, args: ["proxy", "router"] },
    ].map(({ account, ...agent }) => startAgentProcess({ ...shared, ...agent, serviceAccount: account, token: tokenFor(issuer, account) })),
  );
  if (server === undefined || client === undefined || gateway === undefined) throw new Error("there are three agents");
  await Promise.all([
    listening(ports.http),
    listening(ports.tcp),
    listening(ports.grpc),
    ...Object.values(ingress).map((port) => listening(port, SERVER)),
  ]);
  return { istiod, client, server, gateway, gatewayPort, app, ports, ingress: { address: SERVER, http: ingress.http } };
}

interface ConfigParts {
  readonly ports: Ports;
  readonly ingress: Ports;
  readonly apps: Ports;
  readonly gatewayPort: number;
}

const config = ({ ports, ingress, apps, gatewayPort }: ConfigParts): string => `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: cart, namespace: shop}
spec:
  hosts: [${CART}]
  location: MESH_INTERNAL
  resolution: STATIC
  ports:
  - {number: ${ports.http}, name: http, protocol: HTTP, targetPort: ${ingress.http}}
  - {number: ${ports.tcp}, name: tcp, protocol: TCP, targetPort: ${ingress.tcp}}
  - {number: ${ports.grpc}, name: grpc, protocol: GRPC, targetPort: ${ingress.grpc}}
  workloadSelector: {labels: {app: cart}}
---
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: cart-v2, namespace: shop}
spec: {address: ${SERVER}, serviceAccount: cart, labels: {app: cart, version: v2, security.istio.io/tlsMode: istio}}
---
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: web-v1, namespace: shop}
spec: {address: ${CLIENT}, serviceAccount: web, labels: {app: web, version: v1}}
---
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {name: cart, namespace: shop}
spec:
  workloadSelector: {labels: {app: cart}}
  ingress:
  - {port: {number: ${ingress.http}, name: http, protocol: HTTP}, bind: ${SERVER}, defaultEndpoint: "127.0.0.1:${apps.http}"}
  - {port: {number: ${ingress.tcp}, name: tcp, protocol: TCP}, bind: ${SERVER}, defaultEndpoint: "127.0.0.1:${apps.tcp}"}
  - {port: {number: ${ingress.grpc}, name: grpc, protocol: GRPC}, bind: ${SERVER}, defaultEndpoint: "127.0.0.1:${apps.grpc}"}
  egress: [{hosts: ["~/*"]}]
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge, namespace: shop}
spec:
  selector: {app: edge}
  servers: [{port: {number: ${gatewayPort}, name: http, protocol: HTTP}, hosts: ["*"]}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: edge, namespace: shop}
spec:
  hosts: ["*"]
  gateways: [edge]
  http: [{route: [{destination: {host: ${CART}, port: {number: ${ports.http}}}}]}]
`;

/** One line of a page of metrics. */
export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** Istio's own metrics on a page of an agent. */
export async function istioSamples({ statusPort }: Pick<RunningAgent, "statusPort">): Promise<readonly Sample[]> {
  const page = await (await fetch(`http://127.0.0.1:${statusPort}/stats/prometheus`)).text();
  return page.split("\n").flatMap((line) => {
    const [, name = "", labels = "", value = ""] = /^(istio_(?!agent)\w+)\{(.*)\} (\S+)$/.exec(line) ?? [];
    return name === "" ? [] : [{ name, labels: Object.fromEntries(readLabels(labels)), value: Number(value) }];
  });
}

/** The sum of all samples of a metric that have these labels. */
export const total = (samples: readonly Sample[], name: string, labels: Readonly<Record<string, string>> = {}): number =>
  samples
    .filter((sample) => sample.name === name && Object.entries(labels).every(([label, value]) => sample.labels[label] === value))
    .reduce((sum, { value }) => sum + value, 0);
