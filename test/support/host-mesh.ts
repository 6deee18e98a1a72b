import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, copyFile, link } from "node:fs/promises";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { findEnvoy } from "../../src/agent/find-envoy.ts";
import { type RunningAgent, startAgentProcess } from "./agent.ts";
import { meshBelieving, tokenFor } from "./agent-mesh.ts";
import type { Call } from "./calls.ts";
import { tempDir } from "./cleanup.ts";
import { rootOf } from "./identity.ts";
import { type Istiod, startIstiod } from "./istiod.ts";
import { type MeshHost, runAsProxy, startHosts } from "./netns.ts";
import { startRelay } from "./relay.ts";
import { createIssuer } from "./tokens.ts";
import { eventually } from "./wait.ts";

type Name = "client" | "web";

/** Two machines, each with an agent, an Envoy and interception: a client, and a web service that knows nothing of TLS. */
export interface HostMesh {
  readonly istiod: Istiod;
  readonly hosts: Readonly<Record<Name, MeshHost>>;
  readonly agents: Readonly<Record<Name, RunningAgent>>;
  /** The service, as the client's program calls it. */
  readonly target: Call & { readonly address: string };
  /** A call past the client's own Envoy: gives the status, or why there was none. */
  callInPlaintext(): Promise<string>;
}

/** Where the service listens on its machine. */
export const WEB_PORT = 8080;

const VIP = "10.96.0.20";
const ISTIOD_PORT = 15_012;

/** How the service takes connections, as a policy. */
export const peerAuthentication = (mode: "STRICT" | "PERMISSIVE"): string =>
  `{apiVersion: security.istio.io/v1, kind: PeerAuthentication, metadata: {name: default, namespace: shop}, spec: {mtls: {mode: ${mode}}}}\n`;

export interface HostMeshOptions {
  /** More configuration. */
  readonly config?: string;
  /** More variables of the agents. */
  readonly env?: Readonly<Record<string, string>>;
}

/** Starts it with a strict service, in `conf/peers.yaml`. Resolves when the client has been answered. */
export async function startHostMesh({ config, env = {} }: HostMeshOptions = {}): Promise<HostMesh> {
  const issuer = createIssuer("https://id.example.com");
  const hosts = await startHosts(["client", "web"]);
  const istiod = await startIstiod({
    files: {
      "mesh.yaml": meshBelieving(issuer),
      "conf/web.yaml": webConfig(hosts.web, hosts.client),
      "conf/peers.yaml": peerAuthentication("STRICT"),
      ...(config !== undefined && { "conf/more.yaml": config }),
    },
  });
  const shared = await tempDir();
  const [socket, envoy] = [join(shared, "istiod"), join(shared, "envoy")];
  await startRelay({ to: istiod.securePort, at: socket });
  await link(findEnvoy(process.env), envoy).catch(() => copyFile(findEnvoy(process.env), envoy));
  await chmod(shared, 0o755);
  await hosts.web.ask("http", { name: "web", port: WEB_PORT });
  const startAgent = async (name: Name): Promise<RunningAgent> => {
    await leadToIstiod(hosts[name], socket);
    return startAgentProcess({
      name,
      serviceAccount: name,
      address: hosts[name].address,
      istiod: `127.0.0.1:${ISTIOD_PORT}`,
      root: await rootOf(istiod),
      token: tokenFor(issuer, name),
      labels: { app: name },
      host: hosts[name],
      env: { ENVOY_PATH: envoy, ISTIO_META_INTERCEPTION_MODE: "REDIRECT", ...env },
    });
  };
  const [client, web] = await Promise.all([startAgent("client"), startAgent("web")]);
  const target = { address: VIP, port: 80, host: "web.shop.svc.cluster.local" };
  await eventually("the service answers", async () => (await hosts.client.ask("call", target)).status === 200);
  return {
    istiod,
    hosts,
    agents: { client, web },
    target,
    callInPlaintext: () => callDirectly(hosts.client, `http://${hosts.web.address}:${WEB_PORT}/`),
  };
}

const webConfig = (web: MeshHost, client: MeshHost): string => `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: web, namespace: shop}
spec:
  hosts: [web.shop.svc.cluster.local]
  addresses: [${VIP}]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP, targetPort: ${WEB_PORT}}]
  workloadSelector: {labels: {app: web}}
---
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: web, namespace: shop}
spec: {address: ${web.address}, serviceAccount: web, labels: {app: web, security.istio.io/tlsMode: istio}}
---
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: buyer, namespace: shop}
spec: {address: ${client.address}, serviceAccount: client, labels: {app: client}}
`;

/** Lets programs of a host reach istiod at an address of their own. */
async function leadToIstiod({ enter }: MeshHost, socket: string): Promise<void> {
  const [command = "", ...words] = [...enter, process.execPath, join(import.meta.dirname, "socket-relay.ts")];
  const child = spawn(command, [...words, String(ISTIOD_PORT), socket], { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  await once(child.stdout, "data");
}

/** A call that nobody but the proxy's user can make. */
async function callDirectly(host: MeshHost, url: string): Promise<string> {
  const script = `fetch(${JSON.stringify(url)}).then((r) => console.log(r.status), (e) => console.log(e.cause?.code ?? String(e)))`;
  return (await runAsProxy(host, script)).trim();
}
