import { X509Certificate } from "node:crypto";
import { BackOff } from "../../base/back-off.ts";
import type { Clock } from "../../base/clock.ts";
import { EdgeError, messageOf } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { Secret } from "../../base/secret.ts";
import { buildCsr } from "../../pki/csr.ts";
import { generateKeys, type KeyKind, privateKeyPem } from "../../pki/keys.ts";
import { readPem, writePem } from "../../pki/pem.ts";
import type { ClientCertificate, Credentials } from "../dialer.ts";
import type { SignedChain } from "./ca-client.ts";

/** The workload's certificate with its key, which is made here and never leaves the process but to its Envoy. */
export interface WorkloadCertificate extends ClientCertificate {
  readonly createdAt: number;
  readonly endsAt: number;
  readonly serial: string;
  /** The names it is for. */
  readonly name: string;
}

export interface IdentityOptions {
  /** The name asked for; the CA decides. */
  readonly spiffeId: string;
  readonly ttlMs: number;
  /** Share of its life that is left when a certificate is renewed, and how far that may be moved at random. */
  readonly renewAt: number;
  readonly jitter: number;
  readonly keyKind: KeyKind;
  sign(csr: string, ttlMs: number): Promise<SignedChain>;
  /** Who brings certificates, where no CA is asked for them. */
  readonly source?: CertificateSource;
  /** A certificate of an earlier run with the roots it came with: used until there is a new one. */
  readonly earlier?: { readonly certificate: ClientCertificate; readonly roots: string };
  readonly clock: Clock;
  readonly log: Log;
}

/** What a source does with certificates and their roots, and with what keeps it from having any. */
export interface CertificateTaker {
  take(certificate: ClientCertificate, roots: string): WorkloadCertificate;
  fail(fault: string, more?: object): void;
}

/** Gives certificates until the signal ends. */
export type CertificateSource = (taker: CertificateTaker, signal: AbortSignal) => Promise<void>;

/** The identity of the workload: its certificate and the roots of the mesh, both kept fresh. */
export interface WorkloadIdentity extends Credentials {
  readonly current: WorkloadCertificate | undefined;
  /** What is wrong at the moment, for those who ask. */
  readonly fault: string | undefined;
  /** Calls back after each change of the certificate or the roots. */
  follow(changed: () => void): () => void;
  /** Roots that the control plane tells of, beside those that came with the certificate; of none where it says nothing. */
  setAnchors(pems: readonly string[]): void;
  /** Renews until the signal ends. */
  run(signal: AbortSignal): Promise<void>;
}

/** A clock that jumps, or a machine that slept, is noticed this late. */
const LOOK_MS = 30_000;
const LEAST_WAIT_MS = 500;

/** Asks for nothing before `run`. A CA that refuses is asked again, less and less often; meanwhile what there was counts until it ends. */
export function createWorkloadIdentity(options: IdentityOptions): WorkloadIdentity {
  const { clock, log } = options;
  const followers = new Set<() => void>();
  let current: WorkloadCertificate | undefined = options.earlier && certificateOf(options.earlier.certificate, clock.now());
  let signedRoots = options.earlier?.roots ?? "";
  let anchors: readonly string[] = [];
  let fault: string | undefined;

  const tell = (): void => {
    for (const changed of followers) changed();
  };
  const fail = (what: string, more: object = {}): void => {
    fault = what;
    log.warn({ ...more, ...(current !== undefined && { ends: new Date(current.endsAt).toISOString() }) }, what);
  };
  const take = (certificate: ClientCertificate, roots: string): WorkloadCertificate => {
    current = certificateOf(certificate, clock.now());
    signedRoots = roots;
    fault = undefined;
    const { name, serial, endsAt } = current;
    log.info({ name, serial, ends: new Date(endsAt).toISOString() }, "the workload has a certificate");
    tell();
    return current;
  };
  return {
    get current() {
      return current;
    },
    get fault() {
      return fault;
    },
    certificate: () => (current !== undefined && current.endsAt > clock.now() ? current : undefined),
    roots: () => joinRoots([signedRoots, ...anchors]),
    follow(changed) {
      followers.add(changed);
      return () => followers.delete(changed);
    },
    setAnchors(pems) {
      const before = joinRoots([signedRoots, ...anchors]);
      if (pems.length > 0) signedRoots = withoutTakenBack(signedRoots, anchors, pems);
      anchors = pems;
      if (joinRoots([signedRoots, ...anchors]) !== before) tell();
    },
    run: (signal) => (options.source ?? signedByCa(options))({ take, fail }, signal),
  };
}

/** The usual source: a key of our own for each certificate, which the CA signs. */
const signedByCa =
  (options: IdentityOptions): CertificateSource =>
  async ({ take, fail }, signal) => {
    const { clock } = options;
    const backOff = new BackOff({ firstMs: 250, mostMs: 30_000 });
    while (!signal.aborted) {
      try {
        const keys = await generateKeys(options.keyKind);
        const signed = await options.sign(buildCsr(keys, options.spiffeId), options.ttlMs);
        const current = take({ chain: signed.chain, key: new Secret(privateKeyPem(keys.privateKey)) }, signed.roots);
        assertLasts(current, clock);
        backOff.reset();
        await untilDue(current, options, signal);
      } catch (error) {
        if (signal.aborted) return;
        const delay = backOff.next();
        fail(sentenceOf(error), { retryMs: Math.round(delay) });
        await clock.sleep(delay, signal).catch(() => {});
      }
    }
  };

function certificateOf({ chain, key }: ClientCertificate, now: number): WorkloadCertificate {
  const leaf = new X509Certificate(chain);
  return { chain, key, createdAt: now, endsAt: leaf.validToDate.getTime(), serial: leaf.serialNumber, name: leaf.subjectAltName ?? "" };
}

function assertLasts({ endsAt }: WorkloadCertificate, clock: Clock): void {
  if (endsAt > clock.now()) return;
  throw new EdgeError("clock_wrong", "by this machine's clock a certificate that was just signed has ended", { hint: "set the clock" });
}

/** Waits for a renewal, whatever becomes of this machine's clock: the CA's goes on, and one that was set back to before the start says nothing. */
async function untilDue(one: WorkloadCertificate, options: IdentityOptions, signal: AbortSignal): Promise<void> {
  const { clock } = options;
  const { at, most } = renewalTime(one, options);
  const began = clock.monotonic();
  for (;;) {
    const left = Math.min(at - clock.now(), began + most - clock.monotonic());
    if (left <= 0 || clock.now() < one.createdAt) return;
    await clock.sleep(Math.min(left, LOOK_MS), signal);
  }
}

/** When a certificate is renewed by this machine's clock, and after how long at the latest, by any. */
function renewalTime(
  { createdAt, endsAt }: WorkloadCertificate,
  { renewAt, jitter, ttlMs }: IdentityOptions,
): { readonly at: number; readonly most: number } {
  const left = Math.min(0.95, Math.max(0.05, renewAt + (Math.random() * 2 - 1) * jitter));
  const life = endsAt - createdAt;
  const most = Math.max(LEAST_WAIT_MS, Math.min(life, ttlMs) * (1 - left));
  return { at: Math.max(createdAt + LEAST_WAIT_MS, endsAt - life * left), most };
}

/** One bundle without repetitions. */
const joinRoots = (texts: readonly string[]): string => [...rootsIn(texts)].join("");

function rootsIn(texts: readonly string[]): ReadonlySet<string> {
  const blocks = texts.flatMap((text) => readPem(text)).filter(({ label }) => label === "CERTIFICATE");
  return new Set(blocks.map(({ bytes }) => writePem("CERTIFICATE", bytes)));
}

/** A root that the control plane told of and tells of no more is trusted no more, though it came with the certificate too: that may be hours from its renewal. */
function withoutTakenBack(signed: string, before: readonly string[], after: readonly string[]): string {
  const [known, left] = [rootsIn(before), rootsIn(after)];
  return [...rootsIn([signed])].filter((root) => !known.has(root) || left.has(root)).join("");
}

/** What went wrong and what to do, as one text. */
export const sentenceOf = (error: unknown): string =>
  `${messageOf(error)}${error instanceof EdgeError && error.hint !== undefined ? ` (${error.hint})` : ""}`;
