import { systemClock } from "../../src/base/clock.ts";
import { makeCa, type TestCa } from "../../src/ca/ca-fixture.ts";
import { buildCertificate } from "../../src/pki/build-certificate.ts";
import { readCsr } from "../../src/pki/csr.ts";
import { readCsrClaims } from "../../src/pki/csr-claims.ts";
import { writePem } from "../../src/pki/pem.ts";
import type { Cluster, KubeObject } from "../cluster/start-cluster.ts";
import { watchAll } from "../cluster/watch.ts";

/** A signer of a cluster, as its own controller would be: signs requests that somebody approved, as they stand. */
export interface ClusterSigner {
  readonly name: string;
  /** PEM of its root; what it signs is below an intermediate. */
  readonly root: string;
  /** Requests for it, as they came. */
  readonly seen: readonly SigningRequest[];
  /** What it signed, in PEM. */
  readonly signed: readonly string[];
  /** `fail` says so in the request, `sign-one` in all after the next; `wait` leaves requests as they are; `deny` is whoever approves. */
  does: "sign" | "sign-one" | "fail" | "wait" | "deny";
  /** How long certificates last, whatever was asked for. */
  ttlMs: number;
  /** Publishes its root in a ClusterTrustBundle. */
  publish(): Promise<void>;
  stop(): void;
}

/** What of a CertificateSigningRequest tests look at. */
export interface SigningRequest extends KubeObject {
  readonly spec: {
    readonly request: string;
    readonly signerName: string;
    readonly usages: readonly string[];
    readonly expirationSeconds?: number;
    readonly username: string;
  };
  readonly status?: {
    readonly certificate?: string;
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
  };
}

const HOUR_MS = 3_600_000;

/** Starts one. */
export async function startSigner(cluster: Cluster, name: string): Promise<ClusterSigner> {
  const now = systemClock.now();
  const life = { notBefore: now - HOUR_MS, notAfter: now + 24 * HOUR_MS };
  const root = await makeCa(`root of ${name}`, life);
  const issuer = await makeCa(`issuer of ${name}`, { ...life, issuer: root });
  const seen = new Map<string, SigningRequest>();
  const signedPems: string[] = [];
  const busy = new Set<string>();
  const ending = new AbortController();
  const signer: ClusterSigner = {
    name,
    root: root.certificate.pem,
    get seen() {
      return [...seen.values()];
    },
    signed: signedPems,
    does: "sign",
    ttlMs: HOUR_MS,
    async publish() {
      const metadata = { name: `${name.replace("/", ":")}:roots` };
      const spec = { signerName: name, trustBundle: root.certificate.pem };
      await cluster.client.apply(JSON.stringify({ apiVersion: "certificates.k8s.io/v1beta1", kind: "ClusterTrustBundle", metadata, spec }));
    },
    stop: () => ending.abort(),
  };
  const look = async (object: SigningRequest): Promise<void> => {
    const has = (type: string): boolean => object.status?.conditions?.some((one) => one.type === type) === true;
    if (object.status?.certificate !== undefined || has("Denied") || has("Failed") || signer.does === "wait") return;
    const put = (subresource: string, status: unknown): Promise<unknown> =>
      cluster.client.patch("CertificateSigningRequest", object.metadata.name, { subresource, body: { status } });
    const conditions = object.status?.conditions ?? [];
    if (signer.does === "deny" && !has("Approved")) await put("approval", { conditions: [...conditions, condition("Denied")] });
    if (!has("Approved")) return;
    if (signer.does === "fail") return void (await put("status", { conditions: [...conditions, condition("Failed")] }));
    if (signer.does === "sign-one") signer.does = "fail";
    const pem = await signed(object, issuer, signer.ttlMs);
    signedPems.push(pem);
    await put("status", { certificate: Buffer.from(pem).toString("base64") });
  };
  void watchAll<SigningRequest>({
    client: cluster.client,
    resource: "CertificateSigningRequest",
    signal: ending.signal,
    changed(objects) {
      for (const object of objects.values()) {
        const id = `${object.metadata.name}@${object.metadata.resourceVersion}`;
        if (object.spec.signerName !== name || busy.has(id)) continue;
        busy.add(id);
        seen.set(object.metadata.name, object);
        look(object).catch(() => undefined); // It may be gone already.
      }
    },
  });
  return signer;
}

const condition = (type: string) => ({ type, status: "True", reason: "Test", message: `because the test wants it ${type.toLowerCase()}` });

async function signed({ spec }: SigningRequest, issuer: TestCa, ttlMs: number): Promise<string> {
  const csr = Buffer.from(spec.request, "base64").toString();
  const { names } = readCsrClaims(csr);
  const uri = names.find(({ type }) => type === "uri")?.value;
  const dnsNames = names.filter(({ type }) => type === "dns").map(({ value }) => value);
  const now = systemClock.now();
  const der = buildCertificate({
    use: uri === undefined ? { is: "server", dnsNames, addresses: [] } : { is: "workload", uri },
    keyInfo: (await readCsr(csr)).keyInfo,
    notBefore: now - 60_000,
    notAfter: now + ttlMs,
    issuer: { key: issuer.keys.privateKey, keyInfo: issuer.certificate.keyInfo, name: issuer.certificate.subject },
  });
  return writePem("CERTIFICATE", der) + issuer.certificate.pem;
}
