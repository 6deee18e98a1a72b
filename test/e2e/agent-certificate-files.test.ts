import { createPrivateKey, X509Certificate } from "node:crypto";
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type AgentRunOptions, type RunningAgent, startAgentProcess } from "../support/agent.ts";
import { meshBelieving, tokenFor } from "../support/agent-mesh.ts";
import { tempDir } from "../support/cleanup.ts";
import { askCertificate, rootOf } from "../support/identity.ts";
import { type Istiod, startIstiod } from "../support/istiod.ts";
import { freePort } from "../support/ports.ts";
import { createIssuer } from "../support/tokens.ts";
import { eventually, says } from "../support/wait.ts";

const issuer = createIssuer("https://id.example.com");

/** A workload that has something to show a certificate for: a listener of its own. */
const INGRESS = (port: number): string => `
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {name: web, namespace: shop}
spec:
  ingress: [{port: {number: ${port}, name: http, protocol: HTTP}, bind: 127.0.0.1, defaultEndpoint: "127.0.0.1:9"}]
`;

const startMesh = async (): Promise<Istiod> =>
  startIstiod({ files: { "mesh.yaml": meshBelieving(issuer), "conf/web.yaml": INGRESS(await freePort()) } });

const agentOf = (istiod: Istiod, options: Partial<AgentRunOptions>): Promise<RunningAgent> =>
  startAgentProcess({
    name: "web",
    serviceAccount: "web",
    address: "127.0.0.10",
    istiod: `127.0.0.1:${istiod.securePort}`,
    ...options,
  });

/** Has a certificate signed and puts it with its key and roots into a directory. Gives its serial number. */
async function putCertificate(istiod: Istiod, directory: string): Promise<string> {
  const signed = await askCertificate(istiod, { token: tokenFor(issuer, "web") });
  await mkdir(directory, { recursive: true });
  const files = { "root-cert.pem": signed.roots, "key.pem": signed.key, "cert-chain.pem": signed.chain.join("") };
  for (const [name, text] of Object.entries(files)) {
    await writeFile(join(directory, `.${name}`), text);
    await rename(join(directory, `.${name}`), join(directory, name));
  }
  return new X509Certificate(signed.chain.join("")).serialNumber.toLowerCase();
}

const plain = (serial: string): string => serial.replace(/^0+/, "");

describe("certificates in files", () => {
  it("are the workload's with FILE_MOUNTED_CERTS: no CA is asked, and new ones are taken up", async () => {
    const istiod = await startMesh();
    const home = await tempDir();
    const certs = join(home, "etc/certs");
    const first = await putCertificate(istiod, certs);
    const agent = await agentOf(istiod, { home, env: { FILE_MOUNTED_CERTS: "true", OUTPUT_CERTS: "etc/certs" } });
    await eventually("it is shown", async () => plain(await agent.serial()) === plain(first));
    await writeFile(join(certs, "key.pem"), "half");
    await says(agent, "key.pem cannot be used: it holds no private key");
    expect(plain(await agent.serial())).toBe(plain(first));
    const second = await putCertificate(istiod, certs);
    await eventually("the new one is shown", async () => plain(await agent.serial()) === plain(second));
    expect(await istiod.metric("citadel_server_csr_count")).toBe(2); // Those of the test itself.
  });

  it("are enough to be given the first certificate with PROV_CERT, and are not the workload's", async () => {
    const istiod = await startMesh();
    const home = await tempDir();
    const provisioned = await putCertificate(istiod, join(home, "provisioned"));
    const agent = await agentOf(istiod, { home, env: { PROV_CERT: "provisioned" } });
    const serial = await eventually("there is a certificate", async () => (await agent.serial()) || undefined);
    expect(plain(serial)).not.toBe(plain(provisioned));
    expect(agent.log()).not.toContain("neither a token nor a certificate");
  });
});

describe("the key of a workload", () => {
  it.for([
    [{}, { asymmetricKeyType: "ec", asymmetricKeyDetails: { namedCurve: "prime256v1" } }],
    [
      { ECC_SIGNATURE_ALGORITHM: "ECDSA", ECC_CURVE: "P384" },
      { asymmetricKeyType: "ec", asymmetricKeyDetails: { namedCurve: "secp384r1" } },
    ],
    [{ WORKLOAD_RSA_KEY_SIZE: "3072" }, { asymmetricKeyType: "rsa", asymmetricKeyDetails: { modulusLength: 3072 } }],
  ] as const)("is as variables say: %j", async ([env, want]) => {
    const istiod = await startMesh();
    const more = { OUTPUT_CERTS: "etc/certs", CA_PROVIDER: "GoogleCAS", XDS_AUTH_PROVIDER: "gcp", JWT_POLICY: "third-party-jwt" };
    const root = await rootOf(istiod);
    const agent = await agentOf(istiod, { root, token: tokenFor(issuer, "web"), env: { ...env, ...more } });
    const pem = await eventually("the key is there", () => readFile(join(agent.home, "etc/certs/key.pem"), "utf8"));
    expect(createPrivateKey(pem)).toMatchObject(want);
    await says(agent, "environment variables are not honoured and are ignored\tnames=CA_PROVIDER, XDS_AUTH_PROVIDER");
  });
});
