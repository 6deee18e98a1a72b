import { join } from "node:path";
import { type Caller, createAuthenticator } from "../authn/authenticator.ts";
import { AuthnError } from "../authn/authn-error.ts";
import type { TokenVerifier } from "../authn/token-verifier.ts";
import type { Clock } from "../base/clock.ts";
import { EdgeError } from "../base/errors.ts";
import { limitedLog } from "../base/limited-log.ts";
import type { Log } from "../base/log.ts";
import { type Authority, createAuthority, type Signer } from "../ca/authority.ts";
import { CREATE_CERTIFICATE, certificateService } from "../ca/certificate-service.ts";
import { endsSoon, warnOfExpiry } from "../ca/expiry-warnings.ts";
import { fileRootStore } from "../ca/file-root-store.ts";
import type { RootStore } from "../ca/root-store.ts";
import type { LoadedMesh } from "../config/mesh/load-mesh.ts";
import { bundlePem } from "../pki/chain.ts";
import type { Peer } from "../wire/discovery-stream.ts";
import type { UnaryMethod } from "../wire/grpc-server.ts";
import type { TlsCredentials } from "../wire/tls-listener.ts";
import type { ClusterRoot } from "./cluster-link.ts";
import { type DelegatedCa, delegatedCa } from "./delegated-ca.ts";
import { givenCertificate } from "./given-certificate.ts";
import type { HealthCheck } from "./health.ts";
import type { IdentityMetrics } from "./identity-metrics.ts";
import { type JoinTokens, openJoinTokens } from "./join-tokens.ts";
import { ownCertificate, type ServerCertificate, serverNames } from "./own-certificate.ts";
import { tokenIssuers } from "./token-issuers.ts";

/** Lines about callers who were refused a certificate, which anybody can cause. */
const REFUSALS_PER_SECOND = 20;

export interface IdentityOptions {
  readonly baseDir: string;
  readonly mesh: LoadedMesh;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: IdentityMetrics;
  /** Whether there is a secure port; without one there is no use for a CA, and none is made. */
  readonly secure: boolean;
  /** Believes tokens of a Kubernetes cluster, where there is one. */
  readonly cluster: TokenVerifier | undefined;
  /** Where a cluster keeps the CA; undefined where it is in files. */
  rootStore?(root: ClusterRoot): RootStore | undefined;
  /** Other roots are in force. */
  rootsChanged(): void;
}

/** Who callers are and who we are: what the secure port needs. */
export interface Identity {
  /** Undefined where there is neither a CA nor a certificate given to us: then no secure port can be opened. */
  readonly tls: TlsCredentials | undefined;
  /** The CA's gRPC methods; none where the CA is off. */
  readonly methods: Readonly<Record<string, UnaryMethod>>;
  /** Rejects with `AuthnError`. */
  authenticate(peer: Peer): Promise<Caller>;
  /** Roots that workloads are to trust, in PEM; empty where there is no CA here. */
  roots(): string;
  /** Tokens for machines that join; undefined where nothing is signed here. */
  readonly joinTokens: JoinTokens | undefined;
  checks(): readonly HealthCheck[];
  /** Issuers and trust domains may have changed. */
  meshChanged(mesh: LoadedMesh): void;
  stop(): void;
}

/** Loads or makes the CA, gets the server its certificate and knows whose tokens are believed. Throws `EdgeError` where what is on disk cannot be used. */
export async function startIdentity(options: IdentityOptions): Promise<Identity> {
  const { baseDir, clock, log } = options;
  let mesh = options.mesh;
  const issuers = tokenIssuers(baseDir, clock);
  const signs = options.secure && mesh.process.services.ca;
  const joinTokens = signs ? await openJoinTokens(baseDir, clock) : undefined;
  const verifiersOf = (): readonly TokenVerifier[] => [
    ...(joinTokens ? [joinTokens.verifier] : []),
    ...issuers(mesh.process.tokenIssuers),
    ...(options.cluster ? [options.cluster] : []),
  ];
  let verifiers = verifiersOf();
  const authenticator = createAuthenticator({
    clock,
    verifiers: () => verifiers,
    trustDomains: () => [mesh.mesh.trustDomain, ...mesh.mesh.trustDomainAliases],
  });
  const changed = (): void => {
    server?.refresh();
    options.rootsChanged();
  };
  const { ca: elsewhere } = mesh.mesh;
  const delegated =
    signs && elsewhere !== undefined && elsewhere.address !== ""
      ? await delegatedCa({ baseDir, settings: elsewhere, clock, log, rootsChanged: changed })
      : undefined;
  const ca = signs && delegated === undefined ? await startCa(options) : undefined;
  const server: ServerCertificate | undefined = options.secure
    ? await serverCertificate(options, { authority: ca?.authority, delegated })
    : undefined;
  const stopFollowing = ca?.follow(changed);
  const authenticate = ({ certificate, certificateFault, header }: Peer): Promise<Caller> =>
    authenticator.authenticate({
      certificate,
      authorization: header("authorization"),
      ...(certificateFault !== undefined && { certificateFault }),
    });
  const signer = delegated ?? ca?.authority;
  return {
    tls: server,
    methods: signer === undefined ? {} : { [CREATE_CERTIFICATE]: signingMethod(options, signer, authenticate) },
    authenticate,
    joinTokens,
    roots: () => delegated?.roots() ?? (ca === undefined ? "" : bundlePem(ca.authority.material.roots)),
    checks: () => [...(ca?.checks() ?? []), ...(delegated?.checks() ?? []), ...(server === undefined ? [] : [serverCheck(server, clock)])],
    meshChanged(next) {
      if (next.process.ca.address !== mesh.process.ca.address) log.warn("ca.address changed; that takes effect at the next start");
      mesh = next;
      verifiers = verifiersOf();
    },
    stop() {
      stopFollowing?.();
      ca?.stop();
      delegated?.stop();
      server?.stop();
    },
  };
}

function signingMethod(
  { mesh, clock, log, metrics }: IdentityOptions,
  signer: Signer,
  authenticate: (peer: Peer) => Promise<Caller>,
): UnaryMethod {
  const trusted = mesh.settings.trustedAccounts.split(",").map((account) => account.trim());
  return certificateService({
    signer,
    mayActFor: ({ namespace, serviceAccount }) => trusted.includes(`${namespace}/${serviceAccount}`),
    async authenticate(peer) {
      try {
        return await authenticate(peer);
      } catch (error) {
        if (error instanceof AuthnError) metrics.refused("ca", error.reason);
        throw error;
      }
    },
    clock,
    log: limitedLog(log, clock, REFUSALS_PER_SECOND),
    metrics: metrics.ca,
  });
}

interface RunningCa {
  readonly authority: Authority;
  /** Calls back when other certificates are in force. */
  follow(changed: () => void): () => void;
  checks(): readonly HealthCheck[];
  stop(): void;
}

async function startCa({ baseDir, mesh, clock, log, metrics, ...options }: IdentityOptions): Promise<RunningCa> {
  const { rootCertTtlMs, workloadCertTtlMs, maxWorkloadCertTtlMs } = mesh.settings;
  const root = { directory: join(baseDir, "etc/cacerts"), trustDomain: mesh.mesh.trustDomain, rootTtlMs: rootCertTtlMs };
  const store = options.rootStore?.(root) ?? fileRootStore({ ...root, clock, log });
  const authority = createAuthority({
    material: await store.load(),
    clock,
    defaultTtlMs: workloadCertTtlMs,
    maxTtlMs: maxWorkloadCertTtlMs,
  });
  let fault: string | undefined;
  const rootEndsAt = (): number => Math.min(...authority.material.roots.map(({ notAfter }) => notAfter));
  const chainEndsAt = (): number => authority.material.endsAt;
  metrics.observe({ rootEndsAt, chainEndsAt, reloadFailed: () => fault !== undefined, now: () => clock.now() });
  const stopWarning = warnOfExpiry({
    clock,
    log,
    endings: () => [
      { name: "root certificate", endsAt: rootEndsAt() },
      { name: "CA certificate", endsAt: chainEndsAt() },
    ],
  });
  return {
    authority,
    follow: (changed) =>
      store.follow((news) => {
        fault = "fault" in news ? news.fault : undefined;
        if ("fault" in news) {
          log.error(
            { place: store.place, problem: news.fault },
            "the new certificates of the CA are wrong; the last good ones stay in force",
          );
          return;
        }
        authority.replace(news.material);
        log.info({ place: store.place, ends: new Date(chainEndsAt()).toISOString() }, "new certificates of the CA are in force");
        changed();
      }),
    checks: () => [expiryCheck("CA", { fault, endsAt: chainEndsAt(), now: clock.now() })],
    stop: stopWarning,
  };
}

async function serverCertificate(
  { baseDir, mesh, clock, log }: IdentityOptions,
  { authority, delegated }: { readonly authority: Authority | undefined; readonly delegated: DelegatedCa | undefined },
): Promise<ServerCertificate | undefined> {
  const clientRoots = (): readonly string[] | undefined =>
    delegated?.roots()
      ? [delegated.roots()]
      : authority && [bundlePem(authority.material.roots), ...authority.material.intermediates.map(({ pem }) => pem)];
  const given = givenCertificate({ directory: join(baseDir, "etc/certs"), clientRoots, clock, log });
  if (delegated !== undefined && (await given) === undefined)
    throw new EdgeError(
      "ca_unusable",
      "ca.address leaves signing to another CA, and there is no certificate for this server in etc/certs",
      {
        hint: "put cert-chain.pem, key.pem and root-cert.pem there; the other CA signs for workloads only",
      },
    );
  if (authority === undefined) return given;
  const { podNamespace: namespace, clusterDomain, revision, customHosts, certProvider } = mesh.settings;
  if (certProvider !== "istiod" && (await given) === undefined)
    log.warn({ certProvider }, "no other signer than istiod is built yet; its certificate is from its own CA (PILOT_CERT_PROVIDER)");
  const dnsNames = serverNames({ namespace, clusterDomain, revision, customHosts });
  return given.then((found) => found ?? ownCertificate({ authority, dnsNames, clock }));
}

const serverCheck = (server: ServerCertificate, clock: Clock): HealthCheck =>
  expiryCheck("server certificate", { fault: server.fault, endsAt: server.endsAt, now: clock.now(), renewsItself: true });

interface Expiry {
  readonly fault: string | undefined;
  readonly endsAt: number;
  readonly now: number;
  /** Short lives are meant: only the end itself is worth a word. */
  readonly renewsItself?: boolean;
}

function expiryCheck(name: string, { fault, endsAt, now, renewsItself = false }: Expiry): HealthCheck {
  const soon = renewsItself ? endsAt <= now : endsSoon(endsAt, now);
  const ends = `valid until ${new Date(endsAt).toISOString()}`;
  return {
    name,
    ok: fault === undefined && !soon,
    blocks: false,
    detail: fault === undefined ? ends : `${fault}; the last good is ${ends}`,
  };
}
