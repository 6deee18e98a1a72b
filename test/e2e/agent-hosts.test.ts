import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, copyFile, link } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { findEnvoy } from "../../src/agent/find-envoy.ts";
import { startAgentProcess } from "../support/agent.ts";
import { meshBelieving, tokenFor } from "../support/agent-mesh.ts";
import { tempDir } from "../support/cleanup.ts";
import { rootOf } from "../support/identity.ts";
import { startIstiod } from "../support/istiod.ts";
import { hostsImpossible, type MeshHost, runAsProxy, startHosts } from "../support/netns.ts";
import { startRelay } from "../support/relay.ts";
import { createIssuer } from "../support/tokens.ts";
import { eventually } from "../support/wait.ts";

const VIP = "10.96.0.20";
const ISTIOD_PORT = 15_012;

/** A web service on one machine, which knows nothing of TLS. */
const web = ({ address }: MeshHost): string => `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: web, namespace: shop}
spec:
  hosts: [web.shop.svc.cluster.local]
  addresses: [${VIP}]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP, targetPort: 8080}]
  workloadSelector: {labels: {app: web}}
---
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: web, namespace: shop}
spec: {address: ${address}, serviceAccount: web, labels: {app: web, security.istio.io/tlsMode: istio}}
---
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: {name: default, namespace: shop}
spec: {mtls: {mode: STRICT}}
`;

/** Lets programs of a host reach istiod at an address of their own. */
async function leadToIstiod({ enter }: MeshHost, socket: string): Promise<void> {
  const [command = "", ...words] = [...enter, process.execPath, join(import.meta.dirname, "../support/socket-relay.ts")];
  const child = spawn(command, [...words, String(ISTIOD_PORT), socket], { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  await once(child.stdout, "data");
}

/** A call past the host's own Envoy, which nobody but the proxy's user can make: gives the status, or why there was none. */
async function callInPlaintext(host: MeshHost, url: string): Promise<string> {
  const script = `fetch(${JSON.stringify(url)}).then((r) => console.log(r.status), (e) => console.log(e.cause?.code ?? String(e)))`;
  return (await runAsProxy(host, script)).trim();
}

const impossible = hostsImpossible();

describe.skipIf(impossible !== undefined)(`machines of their own (${impossible ?? "network namespaces with interception"})`, () => {
  it("talk in mutual TLS through agents, and strict ones refuse all else", async () => {
    const issuer = createIssuer("https://id.example.com");
    const hosts = await startHosts(["client", "web"]);
    const istiod = await startIstiod({ files: { "mesh.yaml": meshBelieving(issuer), "conf/web.yaml": web(hosts.web) } });
    const socketDir = await tempDir();
    const socket = join(socketDir, "istiod");
    await startRelay({ to: istiod.securePort, at: socket });
    const envoy = join(socketDir, "envoy");
    await link(findEnvoy(process.env), envoy).catch(() => copyFile(findEnvoy(process.env), envoy));
    await chmod(socketDir, 0o755);
    await hosts.web.ask("http", { name: "web", port: 8080 });
    await Promise.all(
      (["client", "web"] as const).map(async (name) => {
        await leadToIstiod(hosts[name], socket);
        await startAgentProcess({
          name,
          serviceAccount: name,
          address: hosts[name].address,
          istiod: `127.0.0.1:${ISTIOD_PORT}`,
          root: await rootOf(istiod),
          token: tokenFor(issuer, name),
          labels: { app: name },
          host: hosts[name],
          env: { ENVOY_PATH: envoy, ISTIO_META_INTERCEPTION_MODE: "REDIRECT" },
        });
      }),
    );
    const target = { address: VIP, port: 80, host: "web.shop.svc.cluster.local" };
    await eventually("the service answers", async () => (await hosts.client.ask("call", target)).status === 200);
    expect(await hosts.client.ask("call", target)).toMatchObject({ status: 200, by: "web" });
    expect(await callInPlaintext(hosts.client, `http://${hosts.web.address}:8080/`)).toBe("ECONNRESET");
    const hits = await hosts.web.ask("hits", { port: 8080 });
    expect(hits.length).toBeGreaterThan(0);
    expect(hits.every(({ from }) => /127\.0\.0\.\d+$/.test(from))).toBe(true);
  });
});
