import { X509Certificate } from "node:crypto";
import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { certificateSecret, rootsSecret } from "../../src/agent/sds/secret-bytes.ts";
import { systemClock } from "../../src/base/clock.ts";
import { Secret } from "../../src/base/secret.ts";
import { makeCa } from "../../src/ca/ca-fixture.ts";
import { type AgentRunOptions, type RunningAgent, startAgentProcess } from "../support/agent.ts";
import { meshBelieving, tokenFor } from "../support/agent-mesh.ts";
import { createCertificateIssuer, writePair } from "../support/certificates.ts";
import { tempDir } from "../support/cleanup.ts";
import { httpEcho } from "../support/echo.ts";
import { edgeObjects } from "../support/edge-gateway.ts";
import { askCertificate, rootOf } from "../support/identity.ts";
import { type Istiod, startIstiod } from "../support/istiod.ts";
import { freePort } from "../support/ports.ts";
import { startSdsServer } from "../support/sds-server.ts";
import { tlsCall } from "../support/tls-call.ts";
import { createIssuer } from "../support/tokens.ts";
import { eventually, says } from "../support/wait.ts";

const issuer = createIssuer("https://id.example.com");
const NOW_S = Math.floor(systemClock.now() / 1_000);

/** A workload that has something to show a certificate for: a listener of its own. */
const INGRESS = (port: number): string => `
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {name: web, namespace: shop}
spec:
  workloadSelector: {labels: {app: web}}
  ingress: [{port: {number: ${port}, name: http, protocol: HTTP}, bind: 127.0.0.1, defaultEndpoint: "127.0.0.1:9"}]
`;

const startMesh = async (more: Readonly<Record<string, string>> = {}): Promise<Istiod> =>
  startIstiod({ files: { "mesh.yaml": meshBelieving(issuer), "conf/web.yaml": INGRESS(await freePort()), ...more } });

async function agentOf(istiod: Istiod, options: Partial<AgentRunOptions> = {}): Promise<RunningAgent> {
  return startAgentProcess({
    name: "web",
    serviceAccount: "web",
    address: "127.0.0.10",
    istiod: `127.0.0.1:${istiod.securePort}`,
    root: await rootOf(istiod),
    labels: { app: "web" },
    token: tokenFor(issuer, "web"),
    ...options,
  });
}

describe("what an agent shows of itself", () => {
  it("a token that is refused is reported in a sentence, tried again, and read anew", async () => {
    const istiod = await startMesh();
    const agent = await agentOf(istiod, { token: tokenFor(issuer, "web", { exp: NOW_S - 60 }), wait: false });
    await says(agent, "refuses our credentials");
    await says(agent, "the token must be valid now, for audience istio-ca");
    expect(agent.log()).not.toContain("eyJ");
    await agent.setToken(tokenFor(issuer, "web"));
    await agent.ready();
    expect(await agent.admin("/certs")).toContain("spiffe://cluster.local/ns/shop/sa/web");
  });

  it("a certificate goes on being renewed after the token ran out", async () => {
    const istiod = await startMesh();
    const agent = await agentOf(istiod, { env: { SECRET_TTL: "12s" } });
    const first = await eventually("there is a certificate", async () => (await agent.serial()) || undefined);
    await agent.setToken(tokenFor(issuer, "web", { exp: NOW_S - 60 }));
    for (let last = first, turns = 0; turns < 2; turns++)
      last = await eventually("it is renewed", async () => ((await agent.serial()) === last ? undefined : agent.serial()));
    expect(agent.log()).not.toContain("refuses");
  });

  it("roots and names are checked: a control plane that cannot be verified gets nothing", async () => {
    const istiod = await startMesh();
    const other = await startMesh();
    const foreign = await agentOf(istiod, { root: await rootOf(other), wait: false });
    await says(foreign, "cannot be verified with the roots of");
    const misnamed = await agentOf(istiod, { env: { ISTIOD_SAN: "istiod.elsewhere.svc" }, wait: false });
    await says(misnamed, "cannot be verified with the roots of");
    const rootless = await startAgentProcess({
      name: "web",
      address: "127.0.0.10",
      istiod: `127.0.0.1:${istiod.securePort}`,
      token: "x",
      wait: false,
    });
    await says(rootless, "there is no root certificate to verify the control plane with");
    expect(await istiod.metric("citadel_server_csr_count")).toBe(0);
  });

  it("copies are written where asked, and with them a restart needs no token", async () => {
    const istiod = await startMesh();
    const agent = await agentOf(istiod, { env: { OUTPUT_CERTS: "etc/certs" } });
    const certs = join(agent.home, "etc/certs");
    await eventually("copies are there", async () => (await readFile(join(certs, "cert-chain.pem"), "utf8")).includes("BEGIN"));
    const key = await eventually("so is the key", () => stat(join(certs, "key.pem")));
    expect((key.mode & 0o777).toString(8)).toBe("600");
    expect(await agent.stop()).toBe(0);
    await agent.setToken(tokenFor(issuer, "web", { exp: NOW_S - 60 }));
    agent.start();
    await agent.ready();
    expect(agent.log()).not.toContain("refuses");
    expect(await agent.serial()).not.toBe("");
  });
});

/** A service outside that wants the workload to show a certificate from files. */
const FILES = (certificate: string, key: string): string => `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: bank, namespace: shop}
spec:
  hosts: [bank.example.com]
  location: MESH_EXTERNAL
  resolution: STATIC
  ports: [{number: 81, name: http, protocol: HTTP}]
  endpoints: [{address: 127.0.0.1, ports: {http: 9}}]
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: bank, namespace: shop}
spec:
  host: bank.example.com
  trafficPolicy: {tls: {mode: MUTUAL, clientCertificate: ${certificate}, privateKey: ${key}, caCertificates: ${certificate}}}
`;

describe("an SDS server that is there already", () => {
  it("is used instead: the agent makes no key, and serves files", async () => {
    const home = await tempDir();
    const files = await (await createCertificateIssuer("bank")).issue("DNS:web.example.com");
    const { certFile, keyFile } = await writePair(files);
    const istiod = await startMesh({ "conf/bank.yaml": FILES(certFile, keyFile) });
    const signed = await askCertificate(istiod, { token: tokenFor(issuer, "web") });
    const secrets = new Map([
      ["default", certificateSecret("default", signed.chain.join(""), new Secret(signed.key))],
      ["ROOTCA", rootsSecret("ROOTCA", signed.roots)],
    ]);
    const spire = await startSdsServer(join(home, "var/run/secrets/workload-spiffe-uds/socket"), secrets);
    const agent = await agentOf(istiod, { home });
    await says(agent, "certificates come from the SDS server that is there already");
    const certificates = await eventually("Envoy has the certificate of the files", async () => {
      const page = await agent.admin("/certs");
      return page.includes(new X509Certificate(files.cert).serialNumber.toLowerCase()) && page;
    });
    expect(certificates).toContain("spiffe://cluster.local/ns/shop/sa/web");
    expect(certificates).toContain(new X509Certificate(signed.roots).serialNumber.toLowerCase());
    expect(await istiod.metric("citadel_server_csr_count")).toBe(1);
    expect(new Set(spire.asked)).toEqual(new Set(["default", "ROOTCA"]));
    await agent.stop();
  });
});

describe("an SDS server with credentials of its own on the machine", () => {
  it("is asked for those that begin with sds://, wherever the agent was started", async () => {
    const ca = await createCertificateIssuer("elsewhere");
    const [home, web, edge] = [await tempDir(), await httpEcho("web"), await freePort()];
    const { cert, key } = await ca.issue("DNS:edge.test");
    const name = "sds://front-door";
    const socket = join(home, "var/run/secrets/credential-uds/socket");
    await startSdsServer(socket, new Map([[name, certificateSecret(name, cert, new Secret(key))]]));
    const istiod = await startMesh({
      "conf/edge.yaml": edgeObjects({ edge, web: web.port, tls: `{mode: SIMPLE, credentialName: "${name}"}` }),
    });
    await agentOf(istiod, { home, startedIn: await tempDir(), name: "edge", args: ["proxy", "router"], labels: { app: "edge" } });
    const answer = await eventually("the gateway has its certificate", () =>
      tlsCall({ port: edge, name: "edge.test", ca: ca.cert }).catch(() => undefined),
    );
    expect(answer.by).toBe("web");
  });
});

describe("roots of the mesh", () => {
  it("reach Envoy as soon as they stand beside the old ones, and leave it when they are taken away", async () => {
    const istiod = await startMesh();
    const agent = await agentOf(istiod);
    const file = join(istiod.home, "etc/cacerts/root-cert.pem");
    const root = await readFile(file, "utf8");
    const next = await makeCa("next", { notBefore: systemClock.now() - 3_600_000, notAfter: systemClock.now() + 86_400_000 });
    const serial = new X509Certificate(next.certificate.pem).serialNumber.toLowerCase();
    const knows = async (): Promise<boolean> => (await agent.admin("/certs")).includes(serial);
    expect(await knows()).toBe(false);
    await writeFile(file, `${root}${next.certificate.pem}`);
    await eventually("the new root is trusted", knows);
    expect(await agent.admin("/certs")).toContain(new X509Certificate(root).serialNumber.toLowerCase());
    await writeFile(file, root);
    await eventually("it is not any more", async () => !(await knows()));
  });
});
