import { type AgentRunOptions, type RunningAgent, startAgentProcess } from "./agent.ts";
import type { Call } from "./calls.ts";
import { type EchoServer, httpEcho } from "./echo.ts";
import { rootOf } from "./identity.ts";
import { type Istiod, startIstiod } from "./istiod.ts";
import { freePort } from "./ports.ts";
import { listening } from "./proxy.ts";
import { createIssuer, type Issuer } from "./tokens.ts";

/** A mesh on one machine without interception: a client and a server, each with an agent and an Envoy of its own. */
export interface AgentMesh {
  readonly istiod: Istiod;
  readonly issuer: Issuer;
  readonly app: EchoServer;
  readonly client: RunningAgent;
  readonly server: RunningAgent;
  /** The service, as the client's program calls it: in plaintext, to its own Envoy. */
  readonly target: Call;
  /** Where the server's Envoy takes requests from the network. */
  readonly ingress: { readonly address: string; readonly port: number };
}

export interface AgentMeshOptions {
  readonly mesh?: string;
  readonly config?: string;
  readonly istiodEnv?: Readonly<Record<string, string>>;
  readonly agents?: Partial<AgentRunOptions>;
  /** The client's base directory, where there is one already. */
  readonly clientHome?: string;
  /** Addresses of the control plane for agents; by default its secure port. */
  readonly address?: (istiod: Istiod) => string;
}

const SERVER = "127.0.0.11";
const CLIENT = "127.0.0.10";
export const CART_HOST = "cart.shop.svc.cluster.local";

/** mesh.yaml that believes the issuer. */
export const meshBelieving = (issuer: Issuer): string => `tokenIssuers:
- issuer: ${issuer.name}
  jwks: '${issuer.jwks}'
  audiences: [istio-ca]
  identity: {namespace: ns, serviceAccount: sa}
`;

export const tokenFor = (issuer: Issuer, serviceAccount: string, claims: Readonly<Record<string, unknown>> = {}): string =>
  issuer.token({ aud: "istio-ca", ns: "shop", sa: serviceAccount, ...claims });

export async function startAgentMesh(options: AgentMeshOptions = {}): Promise<AgentMesh> {
  const issuer = createIssuer("https://id.example.com");
  const app = await httpEcho("cart");
  const ports = { service: await freePort(), ingress: await freePort(SERVER), app: app.port };
  const istiod = await startIstiod({
    files: {
      "mesh.yaml": `${meshBelieving(issuer)}${options.mesh ?? ""}`,
      "conf/cart.yaml": cartConfig(ports),
      ...(options.config !== undefined && { "conf/more.yaml": options.config }),
    },
    ...(options.istiodEnv !== undefined && { env: options.istiodEnv }),
  });
  const shared = { istiod: options.address?.(istiod) ?? `127.0.0.1:${istiod.securePort}`, root: await rootOf(istiod), ...options.agents };
  const [server, client] = await Promise.all([
    startAgentProcess({
      ...shared,
      name: "cart",
      serviceAccount: "cart",
      address: SERVER,
      labels: { app: "cart" },
      token: tokenFor(issuer, "cart"),
    }),
    startAgentProcess({
      ...shared,
      name: "web",
      serviceAccount: "web",
      address: CLIENT,
      labels: { app: "web" },
      token: tokenFor(issuer, "web"),
      ...(options.clientHome !== undefined && { home: options.clientHome }),
    }),
  ]);
  await listening(ports.service);
  await listening(ports.ingress, SERVER);
  return {
    istiod,
    issuer,
    app,
    client,
    server,
    target: { port: ports.service, host: CART_HOST },
    ingress: { address: SERVER, port: ports.ingress },
  };
}

interface CartPorts {
  readonly service: number;
  readonly ingress: number;
  readonly app: number;
}

/** The service is one workload, whose Envoy takes requests on its ingress port and sees nothing of the mesh outside. */
const cartConfig = ({ service, ingress, app }: CartPorts): string => `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: cart, namespace: shop}
spec:
  hosts: [${CART_HOST}]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: ${service}, name: http, protocol: HTTP, targetPort: ${ingress}}]
  workloadSelector: {labels: {app: cart}}
---
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: cart, namespace: shop}
spec: {address: ${SERVER}, serviceAccount: cart, labels: {app: cart, security.istio.io/tlsMode: istio}}
---
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {name: cart, namespace: shop}
spec:
  workloadSelector: {labels: {app: cart}}
  ingress: [{port: {number: ${ingress}, name: http, protocol: HTTP}, bind: ${SERVER}, defaultEndpoint: "127.0.0.1:${app}"}]
  egress: [{hosts: ["~/*"]}]
`;
