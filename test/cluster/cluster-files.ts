import { execFile } from "node:child_process";
import { generateKeyPair, randomBytes } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

/** The keys, certificates and tokens of one cluster, in its directory. */
export interface ClusterFiles {
  /** PEM of who signed the API server's certificate. */
  readonly ca: string;
  readonly adminToken: string;
  readonly paths: {
    readonly ca: string;
    readonly caKey: string;
    readonly serverCert: string;
    readonly serverKey: string;
    readonly serviceAccountKey: string;
    readonly serviceAccountPublicKey: string;
    readonly tokens: string;
  };
}

const EC = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"];

/** Writes them; the server's certificate is good for these addresses besides its usual names. */
export async function writeClusterFiles(dir: string, addresses: readonly string[]): Promise<ClusterFiles> {
  const paths = {
    ca: join(dir, "ca.pem"),
    caKey: join(dir, "ca.key"),
    serverCert: join(dir, "server.pem"),
    serverKey: join(dir, "server.key"),
    serviceAccountKey: join(dir, "sa.key"),
    serviceAccountPublicKey: join(dir, "sa.pub"),
    tokens: join(dir, "tokens.csv"),
  };
  const adminToken = randomBytes(24).toString("hex");
  await Promise.all([
    writeCertificates(paths, addresses),
    writeServiceAccountKeys(paths),
    writeFile(paths.tokens, `${adminToken},admin,admin,system:masters\n`, { mode: 0o600 }),
  ]);
  return { ca: await readFile(paths.ca, "utf8"), adminToken, paths };
}

async function writeCertificates(paths: ClusterFiles["paths"], addresses: readonly string[]): Promise<void> {
  await openssl("req", "-x509", ...EC, "-subj", "/CN=kubernetes", "-keyout", paths.caKey, "-out", paths.ca);
  const services = ["kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"];
  const names = [...["localhost", ...services].map((name) => `DNS:${name}`), ...addresses.map((address) => `IP:${address}`)];
  const extensions = ["-addext", `subjectAltName=${names.join()}`, "-addext", "basicConstraints=CA:FALSE"];
  const signer = ["-CA", paths.ca, "-CAkey", paths.caKey];
  await openssl(
    "req",
    "-x509",
    ...EC,
    "-subj",
    "/CN=kube-apiserver",
    ...extensions,
    ...signer,
    "-keyout",
    paths.serverKey,
    "-out",
    paths.serverCert,
  );
}

const openssl = (...args: readonly string[]): Promise<unknown> => promisify(execFile)("openssl", args);

async function writeServiceAccountKeys(paths: ClusterFiles["paths"]): Promise<void> {
  const { privateKey, publicKey } = await promisify(generateKeyPair)("rsa", { modulusLength: 2048 });
  await writeFile(paths.serviceAccountKey, privateKey.export({ type: "pkcs1", format: "pem" }), { mode: 0o600 });
  await writeFile(paths.serviceAccountPublicKey, publicKey.export({ type: "spki", format: "pem" }));
}

/** Writes a kubeconfig with one context, as kubectl and client libraries read it. */
export async function writeKubeconfig(
  path: string,
  {
    url,
    ca,
    token,
    namespace = "default",
  }: { readonly url: string; readonly ca: string; readonly token: string; readonly namespace?: string },
): Promise<string> {
  const config = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "test", cluster: { server: url, "certificate-authority-data": Buffer.from(ca).toString("base64") } }],
    users: [{ name: "user", user: { token } }],
    contexts: [{ name: "test", context: { cluster: "test", user: "user", namespace } }],
    "current-context": "test",
  };
  await writeFile(path, JSON.stringify(config, null, 2), { mode: 0o600 });
  return path;
}
