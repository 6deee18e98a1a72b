import { execFileSync } from "node:child_process";
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { tempDir } from "./cleanup.ts";

/** A certificate and its key, both PEM. */
export interface Issued {
  readonly cert: string;
  readonly key: string;
}

/** Somebody who issues certificates, made by openssl. */
export interface CertificateIssuer {
  /** Its own certificate, PEM. */
  readonly cert: string;
  /** Issues a certificate for names such as `DNS:shop.example.com` or `URI:spiffe://…`. */
  issue(...names: readonly string[]): Promise<Issued>;
  /** The same with an RSA key. */
  issueRsa(...names: readonly string[]): Promise<Issued>;
  /** The list of revoked certificates with this one in it, PEM. */
  revoke(issued: Issued): Promise<string>;
  /** An OCSP response about a certificate, DER. */
  staple(issued: Issued): Promise<Buffer>;
}

const KEY_KIND = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"];
const RSA_KIND = ["-newkey", "rsa:2048", "-nodes", "-days", "2"];

/** What openssl needs to keep a list of revoked certificates. */
const caSettings = (index: string): string => `[ca]
default_ca = own
[own]
database = ${index}
default_md = sha256
default_crl_days = 1
`;

/** Makes an issuer that nobody else knows. */
export async function createCertificateIssuer(name: string): Promise<CertificateIssuer> {
  const dir = await tempDir();
  const at = (file: string): string => join(dir, file);
  const own = { cert: at("ca.pem"), key: at("ca.key") };
  openssl("req", "-x509", ...KEY_KIND, "-subj", `/CN=${name}`, "-keyout", own.key, "-out", own.cert);
  let issued = 0;
  const issueOf = async (kind: readonly string[], names: readonly string[]): Promise<Issued> => {
    issued += 1;
    const [cert, key] = [at(`${issued}.pem`), at(`${issued}.key`)];
    const subject = ["-subj", `/CN=${name} ${issued}`, "-addext", `subjectAltName=${names.join()}`, "-addext", "basicConstraints=CA:FALSE"];
    openssl("req", "-x509", ...kind, ...subject, "-CA", own.cert, "-CAkey", own.key, "-keyout", key, "-out", cert);
    return { cert: await readFile(cert, "utf8"), key: await readFile(key, "utf8") };
  };
  return {
    cert: await readFile(own.cert, "utf8"),
    issue: (...names) => issueOf(KEY_KIND, names),
    issueRsa: (...names) => issueOf(RSA_KIND, names),
    async staple(one) {
      const { certFile } = await writePair(one);
      await writeFile(at("index.txt"), "");
      openssl("ocsp", "-issuer", own.cert, "-cert", certFile, "-reqout", at("request.der"));
      const signer = ["-CA", own.cert, "-rsigner", own.cert, "-rkey", own.key];
      openssl("ocsp", "-index", at("index.txt"), ...signer, "-reqin", at("request.der"), "-respout", at("response.der"), "-ndays", "1");
      return readFile(at("response.der"));
    },
    async revoke(one) {
      const { certFile } = await writePair(one);
      await writeFile(at("revoked.txt"), "");
      await writeFile(at("ca.cnf"), caSettings(at("revoked.txt")));
      const signer = ["-config", at("ca.cnf"), "-cert", own.cert, "-keyfile", own.key];
      openssl("ca", ...signer, "-revoke", certFile);
      openssl("ca", ...signer, "-gencrl", "-out", at("crl.pem"));
      return readFile(at("crl.pem"), "utf8");
    },
  };
}

/** Writes a certificate and its key as files; gives their paths. */
export async function writePair({ cert, key }: Issued): Promise<{ readonly certFile: string; readonly keyFile: string }> {
  const dir = await tempDir();
  const [certFile, keyFile] = [join(dir, "cert.pem"), join(dir, "key.pem")];
  await writeFile(certFile, cert);
  await writeFile(keyFile, key);
  return { certFile, keyFile };
}

/** Writes files as those who renew certificates do: beside the old ones, then moved over them. */
export async function placeFiles(dir: string, files: Readonly<Record<string, string>>): Promise<void> {
  await mkdir(dir, { recursive: true });
  for (const [name, text] of Object.entries(files)) await writeFile(join(dir, `${name}.new`), text);
  for (const name of Object.keys(files)) await rename(join(dir, `${name}.new`), join(dir, name));
}

function openssl(...words: readonly string[]): void {
  execFileSync("openssl", [...words], { stdio: ["ignore", "ignore", "pipe"] });
}

/** A Secret with these entries, as a document. */
export const secretDocument = (key: string, entries: Readonly<Record<string, string | Buffer>>, type = "Opaque"): string => {
  const [namespace, name] = key.split("/");
  const data = Object.fromEntries(Object.entries(entries).map(([entry, text]) => [entry, Buffer.from(text).toString("base64")]));
  return `\n---\n${JSON.stringify({ apiVersion: "v1", kind: "Secret", type, metadata: { name, namespace }, data })}\n`;
};

/** A Secret of Kubernetes' own type for certificates. */
export const tlsSecret = (key: string, { cert, key: privateKey }: Issued, more: Readonly<Record<string, string | Buffer>> = {}): string =>
  secretDocument(key, { "tls.crt": cert, "tls.key": privateKey, ...more }, "kubernetes.io/tls");
