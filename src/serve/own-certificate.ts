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
  follow(changed: (material: TlsMaterial) => void): () => void;
  /** Looks again at what it is made from. */
  refresh(): void;
  stop(): void;
}

export interface OwnCertificateOptions {
  readonly authority: Authority;
  readonly dnsNames: readonly string[];
  readonly clock: Clock;
}

const LONGEST_WAIT_MS = 3_600_000;
const LEAST_WAIT_MS = 1_000;

/** A certificate from our own CA, with a key that never leaves memory; renewed at half its life and when the CA changes. */
export async function ownCertificate({ authority, dnsNames, clock }: OwnCertificateOptions): Promise<ServerCertificate> {
  const { privateKey, publicKey } = await generateKeys("P-256");
  const key = new Secret(privateKeyPem(privateKey));
  const keyInfo = publicKey.export({ type: "spki", format: "der" });
  const followers = new Set<(material: TlsMaterial) => void>();
  const issue = (): { readonly material: TlsMaterial; readonly at: number; readonly endsAt: number } => {
    const issued = authority.signServer({ dnsNames, addresses: ["127.0.0.1", "::1"], keyInfo });
    const material = {
      chain: [issued.certificate, ...issued.intermediates].join(""),
      key,
      clientRoots: [issued.roots, ...issued.intermediates],
    };
    return { material, at: clock.now(), endsAt: issued.notAfter };
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
      if (clock.now() >= now.at + (now.endsAt - now.at) / 2) renew();
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
}

/** Of Services that lead to a control plane, older versions' included. */
const SERVICES = ["istiod", "istiod-remote", "istio-pilot", "istio-citadel", "istio-galley", "istio-sidecar-injector"];

/** Names under which a control plane is called: those of its Services, as in Istio, what the operator adds, and this machine's. */
export function serverNames({ namespace, clusterDomain, revision, customHosts }: NamesInput): readonly string[] {
  const own = revision === "" || revision === "default" ? [] : [`istiod-${revision}`, `istiod-remote-${revision}`];
  const services = [...SERVICES, ...own].map((service) => `${service}.${namespace}.svc`);
  const custom = customHosts.split(",").map((host) => host.trim());
  const all = [
    ...services,
    `istiod.${namespace}.svc.${clusterDomain}`,
    `istiod.${namespace}`,
    ...custom,
    hostname().toLowerCase(),
    "localhost",
  ];
  return [...new Set(all)].filter((name) => /^[a-z0-9*]([a-z0-9.*-]{0,252})$/.test(name));
}
