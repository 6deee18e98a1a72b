import { isIP } from "node:net";
import { hostname } from "node:os";
import type { Clock } from "../base/clock.ts";
import { Secret } from "../base/secret.ts";
import type { Authority } from "../ca/authority.ts";
import { generateKeys, privateKeyPem } from "../pki/keys.ts";
import type { TlsMaterial } from "../wire/tls-listener.ts";

/** The certificate the control plane shows, and news of it. */
export interface ServerCertificate {
  readonly current: TlsMaterial;
  readonly endsAt: number;
  /** Why what is on disk is not in force. */
  readonly fault: string | undefined;
  /** What it is verified with, in PEM; empty where that is not known. */
  roots(): string;
  follow(changed: (material: TlsMaterial) => void): () => void;
  /** Looks again at what it is made from. */
  refresh(): void;
  stop(): void;
}

export interface OwnCertificateOptions {
  readonly authority: Authority;
  readonly dnsNames: readonly string[];
  /** Addresses under which it is called from elsewhere. */
  readonly addresses: readonly string[];
  /** Further roots that clients are verified with, where others sign for workloads. */
  clientRoots?(): readonly string[];
  readonly clock: Clock;
}

const LOOPBACK = ["127.0.0.1", "::1"];
/** Timers know nothing of a clock that somebody sets: it is looked at so often. */
const LONGEST_WAIT_MS = 20_000;
const LEAST_WAIT_MS = 1_000;

/**
 * A certificate from our own CA, with a key that never leaves memory; renewed at half its life and when the CA changes, and when this machine's clock was set back to
 * before it was issued: for those whose clock is right it is not valid yet.
 */
export async function ownCertificate(options: OwnCertificateOptions): Promise<ServerCertificate> {
  const { authority, dnsNames, addresses, clock } = options;
  const { privateKey, publicKey } = await generateKeys("P-256");
  const key = new Secret(privateKeyPem(privateKey));
  const keyInfo = publicKey.export({ type: "spki", format: "der" });
  const followers = new Set<(material: TlsMaterial) => void>();
  const issue = () => {
    const issued = authority.signServer({ dnsNames, addresses: [...LOOPBACK, ...addresses], keyInfo });
    // Where nothing stands above the certificate, OpenSSL looks for its issuer and verifies it, for every connection anew.
    const above = issued.intermediates.length > 0 ? issued.intermediates : [authority.material.certificate.pem];
    const material = {
      chain: [issued.certificate, ...above].join(""),
      key,
      clientRoots: [issued.roots, ...issued.intermediates, ...(options.clientRoots?.() ?? [])],
    };
    return { material, at: clock.now(), endsAt: issued.notAfter, roots: issued.roots };
  };
  let now = issue();
  let fault: string | undefined;
  let cancel: () => void = () => {};
  const renew = (): void => {
    try {
      now = issue();
      fault = undefined;
    } catch (error) {
      fault = `it could not be renewed: ${error instanceof Error ? error.message : String(error)}`;
      return;
    }
    for (const changed of followers) changed(now.material);
  };
  const wait = (): void => {
    const left = now.at + (now.endsAt - now.at) / 2 - clock.now();
    cancel = clock.after(Math.min(LONGEST_WAIT_MS, Math.max(LEAST_WAIT_MS, left)), () => {
      if (clock.now() >= now.at + (now.endsAt - now.at) / 2 || clock.now() < now.at) renew();
      wait();
    });
  };
  wait();
  return {
    get current() {
      return now.material;
    },
    get endsAt() {
      return now.endsAt;
    },
    get fault() {
      return fault;
    },
    roots: () => now.roots,
    follow(changed) {
      followers.add(changed);
      return () => followers.delete(changed);
    },
    refresh: renew,
    stop: () => cancel(),
  };
}

export interface NamesInput {
  readonly namespace: string;
  readonly clusterDomain: string;
  readonly revision: string;
  /** Separated by commas. */
  readonly customHosts: string;
  /** Where the API server calls us, where that is not a Service. */
  readonly webhookUrl: string;
}

/** Of Services that lead to a control plane, older versions' included. */
const SERVICES = ["istiod", "istiod-remote", "istio-pilot", "istio-citadel", "istio-galley", "istio-sidecar-injector"];

/** Names under which a control plane is called: those of its Services, as in Istio, what the operator adds, and this machine's. */
export const serverNames = (input: NamesInput): readonly string[] =>
  namesOf([...calledNames(input), hostname().toLowerCase(), "localhost"]);

/** The same for a signer elsewhere, which has no business to vouch for names of machines. */
export const signedNames = (input: NamesInput): readonly string[] => namesOf(calledNames(input));

function calledNames(input: NamesInput): readonly string[] {
  const { namespace, clusterDomain, revision } = input;
  const own = revision === "" || revision === "default" ? [] : [`istiod-${revision}`, `istiod-remote-${revision}`];
  const services = [...SERVICES, ...own].map((service) => `${service}.${namespace}.svc`);
  const custom = hostsOf(input).filter((host) => isIP(host) === 0);
  return [...services, `istiod.${namespace}.svc.${clusterDomain}`, `istiod.${namespace}`, ...custom];
}

const namesOf = (names: readonly string[]): readonly string[] =>
  [...new Set(names)].filter((name) => /^[a-z0-9*]([a-z0-9.*-]{0,252})$/.test(name));

/** Addresses under which a control plane is called, as the operator says. */
export const serverAddresses = (input: NamesInput): readonly string[] => [
  ...new Set(hostsOf(input).filter((host) => isIP(host) !== 0 && !LOOPBACK.includes(host))),
];

function hostsOf({ customHosts, webhookUrl }: NamesInput): readonly string[] {
  const called = URL.parse(webhookUrl)?.hostname.replace(/^\[|\]$/g, "") ?? "";
  return [...customHosts.split(",").map((host) => host.trim()), called];
}
