import type { Clock } from "../base/clock.ts";
import { EdgeError, messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { Secret } from "../base/secret.ts";
import { type CertificateApi, SERVER_USES, SigningRefusal } from "../ca/certificate-api.ts";
import { type Certificate, readCertificates } from "../pki/certificate.ts";
import { bundlePem, chainTo } from "../pki/chain.ts";
import { buildServerCsr } from "../pki/csr.ts";
import { generateKeys, type KeyPair, privateKeyPem } from "../pki/keys.ts";
import type { TlsMaterial } from "../wire/tls-listener.ts";
import { type HeldCertificate, type KeptCertificate, keptCertificate } from "./kept-certificate.ts";
import type { ServerCertificate } from "./own-certificate.ts";
import type { SignerRoots } from "./signer-roots.ts";

export interface SignedCertificateOptions {
  readonly api: CertificateApi;
  /** `example.com/mesh`. */
  readonly signer: string;
  readonly roots: SignerRoots;
  /** The first is the one that must be in it. */
  readonly dnsNames: readonly string[];
  readonly ttlMs: number;
  /** What clients are verified with. */
  clientRoots(): readonly string[];
  /** Where it is kept for a start while the API server is away; undefined: nowhere. */
  readonly kept: string | undefined;
  readonly clock: Clock;
  readonly log: Log;
  readonly random?: () => number;
}

/** A request that is approved is signed within a minute or not at all; approval may be for people, who have a day until Kubernetes removes it. */
const PATIENCE_MS = 60_000;
const APPROVAL_MS = 86_000_000;
const LONGEST_WAIT_MS = 3_600_000;
const LEAST_WAIT_MS = 1_000;
const RETRY = { firstMs: 5_000, mostMs: 600_000 };

/**
 * The control plane's certificate by a signer of the cluster, with a key of its own each time. Renewed at about half its life, and when the signer has other roots; as
 * long as that fails the old one stays in force. Resolves when there is one: who has to approve requests may take their time. Throws `EdgeError` where it is refused.
 */
export async function signedCertificate(options: SignedCertificateOptions): Promise<ServerCertificate> {
  const kept = keptCertificate({ file: options.kept, signer: options.signer, log: options.log });
  await options.roots.ready(options.signer);
  const before = await kept.read();
  const held = before !== undefined && isOfUse(options, before) ? before : await firstOf(options);
  if (held !== before) kept.write(held);
  return new SignedCertificate(options, held, kept);
}

class SignedCertificate implements ServerCertificate {
  readonly #options: SignedCertificateOptions;
  readonly #kept: KeptCertificate;
  readonly #followers = new Set<(material: TlsMaterial) => void>();
  #held: HeldCertificate;
  #renewAt: number;
  #failures = 0;
  #renewing = false;
  #stopped = false;
  #cancel: () => void = () => {};
  fault: string | undefined;

  constructor(options: SignedCertificateOptions, held: HeldCertificate, kept: KeptCertificate) {
    this.#options = options;
    this.#held = held;
    this.#kept = kept;
    this.#renewAt = this.#half();
    this.#wait();
  }

  get current(): TlsMaterial {
    const { chain, key } = this.#held;
    return { chain: bundlePem(chain), key, clientRoots: this.#options.clientRoots() };
  }

  get endsAt(): number {
    return this.#held.chain[0]?.notAfter ?? 0;
  }

  roots(): string {
    const { roots, signer } = this.#options;
    return bundlePem(roots.of(signer, this.#held.chain));
  }

  follow(changed: (material: TlsMaterial) => void): () => void {
    this.#followers.add(changed);
    return () => this.#followers.delete(changed);
  }

  /** Roots may be others: of clients, or of the signer, whose certificate has to be another one then. */
  refresh(): void {
    if (!this.#isTrusted()) void this.#renew();
    this.#tell();
  }

  stop(): void {
    this.#stopped = true;
    this.#cancel();
  }

  #tell(): void {
    for (const changed of this.#followers) changed(this.current);
  }

  #isTrusted(): boolean {
    const { roots, signer } = this.#options;
    return leadsTo(this.#held.chain, roots.of(signer));
  }

  /** Half of its life, a tenth more or less: replicas do not come at once. */
  #half(): number {
    const { random = Math.random } = this.#options;
    return this.#held.since + (this.endsAt - this.#held.since) * (0.45 + random() / 10);
  }

  #wait(): void {
    const { clock } = this.#options;
    this.#cancel();
    if (this.#stopped) return;
    const left = this.#failures > 0 ? pauseAfter(this.#failures, this.#options) : this.#renewAt - clock.now();
    this.#cancel = clock.after(Math.min(LONGEST_WAIT_MS, Math.max(LEAST_WAIT_MS, left)), () => {
      if (this.#failures > 0 || clock.now() >= this.#renewAt || !this.#isTrusted()) void this.#renew();
      else this.#wait();
    });
  }

  async #renew(): Promise<void> {
    if (this.#renewing) return;
    this.#renewing = true;
    const { signer, log } = this.#options;
    try {
      this.#held = await order(this.#options);
      this.#kept.write(this.#held);
      [this.fault, this.#failures, this.#renewAt] = [undefined, 0, this.#half()];
      log.info({ signer, ends: new Date(this.endsAt).toISOString() }, "a new server certificate is in force");
      this.#tell();
    } catch (error) {
      this.#failures += 1;
      this.fault = `it could not be renewed: ${messageOf(error)}`;
      const ends = new Date(this.endsAt).toISOString();
      log.error({ signer, reason: messageOf(error), ends }, "the server certificate could not be renewed; the old one stays in force");
    }
    this.#renewing = false;
    this.#wait();
  }
}

/** Twice as long from one failure to the next, each at random between half and the whole. */
const pauseAfter = (failures: number, { random = Math.random }: Pick<SignedCertificateOptions, "random">): number =>
  Math.min(RETRY.firstMs * 2 ** Math.min(failures - 1, 10), RETRY.mostMs) * (0.5 + random() / 2);

/** Asks until there is one. What passes by itself is waited for, and told; what does not ends the start. */
async function firstOf(options: SignedCertificateOptions): Promise<HeldCertificate> {
  const { signer, clock, log } = options;
  let told = "";
  for (let failures = 1; ; failures++) {
    try {
      return await order(options);
    } catch (error) {
      if (error instanceof SigningRefusal)
        throw new EdgeError("ca_unusable", `istiod has no certificate: ${error.message}`, {
          cause: error,
          hint: "PILOT_CERT_PROVIDER names the signer; with `istiod` its own CA signs",
        });
      if (messageOf(error) !== told) log.warn({ signer, reason: messageOf(error) }, "istiod has no certificate yet; it asks again");
      told = messageOf(error);
    }
    await clock.sleep(pauseAfter(failures, options));
  }
}

async function order({ api, signer, roots, dnsNames, ttlMs, clock }: SignedCertificateOptions): Promise<HeldCertificate> {
  const keys = await generateKeys("P-256");
  const csr = buildServerCsr(keys, dnsNames);
  const pem = await api.sign({ csr, signer, uses: SERVER_USES, ttlMs, patienceMs: PATIENCE_MS, approvalMs: APPROVAL_MS });
  const chain = readCertificates(pem);
  const now = clock.now();
  const fault =
    typeof chain === "string" ? chain : (leafFault(chain[0], { keys, name: dnsNames[0], now }) ?? rootsFault(chain, signer, roots));
  if (typeof chain === "string" || fault !== undefined)
    throw new SigningRefusal(`the certificate of signer ${signer} cannot be used: ${fault}`);
  return { chain: chain.filter(({ isSelfSigned }) => !isSelfSigned), key: new Secret(privateKeyPem(keys.privateKey)), since: now };
}

interface Wanted {
  readonly keys: KeyPair;
  readonly name: string | undefined;
  readonly now: number;
}

function leafFault(leaf: Certificate | undefined, { keys, name, now }: Wanted): string | undefined {
  if (leaf === undefined || !leaf.x509.checkPrivateKey(keys.privateKey)) return "it is for another key";
  if (leaf.notAfter <= now) return "it has ended";
  return isFor(leaf, name) ? undefined : `it is not for ${name}`;
}

function rootsFault(chain: readonly Certificate[], signer: string, roots: SignerRoots): string | undefined {
  const trusted = roots.of(signer, chain);
  if (trusted.length === 0)
    return `nobody names its roots; put them into caCertificates of MeshConfig with certSigners [${signer}], into etc/external-ca-cert/root-cert.pem, or into a ClusterTrustBundle of the signer`;
  return leadsTo(chain, trusted) ? undefined : "it does not lead to the roots that are named for the signer";
}

/** Whether what an earlier process had still serves; it is renewed as if it had not been away. */
const isOfUse = ({ roots, signer, dnsNames, clock }: SignedCertificateOptions, { chain }: HeldCertificate): boolean =>
  chain[0] !== undefined && chain[0].notAfter > clock.now() && isFor(chain[0], dnsNames[0]) && leadsTo(chain, roots.of(signer));

const isFor = ({ names }: Certificate, name: string | undefined): boolean =>
  names.some(({ type, value }) => type === "dns" && value === name);

function leadsTo(chain: readonly Certificate[], roots: readonly Certificate[]): boolean {
  const [leaf, ...above] = chain;
  return leaf !== undefined && chainTo(leaf, above, roots) !== undefined;
}
