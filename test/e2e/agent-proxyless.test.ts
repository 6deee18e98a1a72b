import { chmod, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { makeCa } from "../../src/ca/ca-fixture.ts";
import { type RunningAgent, startAgentProcess } from "../support/agent.ts";
import { meshBelieving, tokenFor } from "../support/agent-mesh.ts";
import { tempDir } from "../support/cleanup.ts";
import { startGrpcWorkload } from "../support/grpc-workload.ts";
import { rootOf } from "../support/identity.ts";
import { type Istiod, startIstiod } from "../support/istiod.ts";
import { freePort } from "../support/ports.ts";
import { createIssuer } from "../support/tokens.ts";
import { eventually } from "../support/wait.ts";

const HOST = "greeter.shop.svc.cluster.local";
const issuer = createIssuer("https://id.example.com");
/** Applications do not run as the agent's user; where the test may not be somebody else, they do. */
const APPLICATION = process.getuid?.() === 0 ? 65_534 : undefined;

const greeter = (port: number): string => `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: greeter, namespace: shop}
spec:
  hosts: [${HOST}]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 7070, name: grpc, protocol: GRPC}]
  endpoints: [{address: 127.0.0.1, ports: {grpc: ${port}}, labels: {security.istio.io/tlsMode: istio}, serviceAccount: greeter}]
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: greeter, namespace: shop}
spec: {host: ${HOST}, trafficPolicy: {tls: {mode: ISTIO_MUTUAL}}}
---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: greeter, namespace: shop}
spec: {rules: [{from: [{source: {principals: [cluster.local/ns/shop/sa/caller]}}]}]}
`;

/** An agent as injection with the template `grpc-agent` runs it. */
async function agentOf(istiod: Istiod, name: string, address: string): Promise<RunningAgent> {
  const home = await tempDir();
  await chmod(home, 0o755);
  return startAgentProcess({
    home,
    name,
    serviceAccount: name,
    address,
    istiod: `127.0.0.1:${istiod.securePort}`,
    root: await rootOf(istiod),
    token: tokenFor(issuer, name),
    env: { DISABLE_ENVOY: "true", ISTIO_META_GENERATOR: "grpc", OUTPUT_CERTS: "copies", KUBERNETES_SERVICE_HOST: "127.0.0.1" },
  });
}

const bootstrapOf = ({ home }: RunningAgent): string => join(home, "etc/istio/proxy/grpc-bootstrap.json");

describe("an agent without Envoy", () => {
  it("gives gRPC's own xDS client and server what they need: where to ask, who they are, a certificate", async () => {
    const port = await freePort();
    const istiod = await startIstiod({ files: { "mesh.yaml": meshBelieving(issuer), "conf/greeter.yaml": greeter(port) } });
    const [serving, calling, other] = [
      await agentOf(istiod, "greeter", "127.0.0.1"),
      await agentOf(istiod, "caller", "127.0.0.9"),
      await agentOf(istiod, "other", "127.0.0.8"),
    ];
    const workload = (agent: RunningAgent) =>
      startGrpcWorkload({ file: bootstrapOf(agent), ...(APPLICATION !== undefined && { user: APPLICATION }) });
    expect(await workload(serving).serve(`127.0.0.1:${port}`, "secured")).toBe(port);
    expect(await workload(calling).call(`${HOST}:7070`, { secure: true })).toEqual(["secured"]);
    expect((await workload(other).call(`${HOST}:7070`, { secure: true }))[0]).toMatch(/^status 7: /);
    expect(await istiod.metric("pilot_total_xds_rejects")).toBe(0);
  });

  it("takes roots that the mesh adds into the copies, and keeps the socket to itself outside a pod", async () => {
    const istiod = await startIstiod({ files: { "mesh.yaml": meshBelieving(issuer) } });
    const agent = await agentOf(istiod, "caller", "127.0.0.9");
    const mode = async (path: string): Promise<number> => (await stat(join(agent.home, path))).mode & 0o777;
    expect([await mode("etc/istio/proxy/XDS"), await mode("etc/istio/proxy/grpc-bootstrap.json")]).toEqual([0o666, 0o644]);
    const file = join(istiod.home, "etc/cacerts/root-cert.pem");
    const next = await makeCa("next", { notBefore: systemClock.now() - 3_600_000, notAfter: systemClock.now() + 86_400_000 });
    await writeFile(file, `${await readFile(file, "utf8")}${next.certificate.pem}`);
    const copy = (): Promise<string> => readFile(join(agent.home, "copies/root-cert.pem"), "utf8");
    await eventually("the new root is among the copies", async () => (await copy()).includes(next.certificate.pem.trim()));
    const outside = await startAgentProcess({
      name: "outside",
      address: "127.0.0.7",
      istiod: `127.0.0.1:${istiod.securePort}`,
      root: await rootOf(istiod),
      token: tokenFor(issuer, "default"),
      env: { DISABLE_ENVOY: "true", GRPC_XDS_BOOTSTRAP: "elsewhere/grpc.json" },
    });
    expect((await stat(join(outside.home, "etc/istio/proxy/XDS"))).mode & 0o777).toBe(0o600);
    expect(JSON.parse(await readFile(join(outside.home, "elsewhere/grpc.json"), "utf8"))).toMatchObject({
      xds_servers: [{ server_uri: `unix://${outside.home}/etc/istio/proxy/XDS` }],
      node: { id: "sidecar~127.0.0.7~outside.shop~shop.svc.cluster.local", metadata: { GENERATOR: "grpc" } },
    });
  });
});
