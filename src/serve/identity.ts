import { join } from "node:path";
import { type Caller, createAuthenticator } from "../authn/authenticator.ts";
import { AuthnError } from "../authn/authn-error.ts";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { type Authority, createAuthority } from "../ca/authority.ts";
import { CREATE_CERTIFICATE, certificateService } from "../ca/certificate-service.ts";
import { endsSoon, warnOfExpiry } from "../ca/expiry-warnings.ts";
import { fileRootStore } from "../ca/file-root-store.ts";
import type { LoadedMesh } from "../config/mesh/load-mesh.ts";
import { bundlePem } from "../pki/chain.ts";
import type { Peer } from "../wire/discovery-stream.ts";
import type { UnaryMethod } from "../wire/grpc-server.ts";
import type { TlsCredentials } from "../wire/tls-listener.ts";
import { givenCertificate } from "./given-certificate.ts";
import type { HealthCheck } from "./health.ts";
import type { IdentityMetrics } from "./identity-metrics.ts";
import { ownCertificate, type ServerCertificate, serverNames } from "./own-certificate.ts";
import { tokenIssuers } from "./token-issuers.ts";

export interface IdentityOptions {
  readonly baseDir: string;
  readonly mesh: LoadedMesh;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: IdentityMetrics;
  /** Whether there is a secure port; without one there is no use for a CA, and none is made. */
  readonly secure: boolean;
}

/** Who callers are and who we are: what the secure port needs. */
export interface Identity {
  /** Undefined where there is neither a CA nor a certificate given to us: then no secure port can be opened. */
  readonly tls: TlsCredentials | undefined;
  /** The CA's gRPC methods; none where the CA is off. */
  readonly methods: Readonly<Record<string, UnaryMethod>>;
  /** Rejects with `AuthnError`. */
  authenticate(peer: Peer): Promise<Caller>;
  checks(): readonly HealthCheck[];
  /** Issuers and trust domains may have changed. */
  meshChanged(mesh: LoadedMesh): void;
  stop(): void;
}

/** Loads or makes the CA, gets the server its certificate and knows whose tokens are believed. Throws `EdgeError` where what is on disk cannot be used. */
export async function startIdentity(options: IdentityOptions): Promise<Identity> {
  const { baseDir, clock, log, metrics } = options;
  let mesh = options.mesh;
  const issuers = tokenIssuers(baseDir, clock);
  let verifiers = issuers(mesh.process.tokenIssuers);
  const authenticator = createAuthenticator({
    clock,
    verifiers: () => verifiers,
    trustDomains: () => [mesh.mesh.trustDomain, ...mesh.mesh.trustDomainAliases],
  });
  if (mesh.process.ca.address !== "")
    log.warn({ address: mesh.process.ca.address }, "ca.address is not honoured: certificates are signed here");
  const ca = options.secure && mesh.process.services.ca ? await startCa(options) : undefined;
  const server = options.secure ? await serverCertificate(options, ca?.authority) : undefined;
  const stopFollowing = ca?.follow(() => server?.refresh());
  const authenticate = ({ certificate, certificateFault, header }: Peer): Promise<Caller> =>
    authenticator.authenticate({
      certificate,
      authorization: header("authorization"),
      ...(certificateFault !== undefined && { certificateFault }),
    });
  const authenticateCounted = async (peer: Peer): Promise<Caller> => {
    try {
      return await authenticate(peer);
    } catch (error) {
      if (error instanceof AuthnError) metrics.refused("ca", error.reason);
      throw error;
    }
  };
  return {
    tls: server,
    methods:
      ca === undefined
        ? {}
        : {
            [CREATE_CERTIFICATE]: certificateService({
              signer: ca.authority,
              authenticate: authenticateCounted,
              clock,
              log,
              metrics: metrics.ca,
            }),
          },
    authenticate,
    checks: () => [...(ca?.checks() ?? []), ...(server === undefined ? [] : [serverCheck(server, clock)])],
    meshChanged(next) {
      mesh = next;
      verifiers = issuers(next.process.tokenIssuers);
    },
    stop() {
      stopFollowing?.();
      ca?.stop();
      server?.stop();
    },
  };
}

interface RunningCa {
  readonly authority: Authority;
  /** Calls back when other certificates are in force. */
  follow(changed: () => void): () => void;
  checks(): readonly HealthCheck[];
  stop(): void;
}

async function startCa({ baseDir, mesh, clock, log, metrics }: IdentityOptions): Promise<RunningCa> {
  const { rootCertTtlMs, workloadCertTtlMs, maxWorkloadCertTtlMs } = mesh.settings;
  const directory = join(baseDir, "etc/cacerts");
  const store = fileRootStore({ directory, trustDomain: mesh.mesh.trustDomain, rootTtlMs: rootCertTtlMs, clock, log });
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
          log.error({ directory, problem: news.fault }, "the new files of the CA are wrong; the last good ones stay in force");
          return;
        }
        authority.replace(news.material);
        log.info({ directory, ends: new Date(chainEndsAt()).toISOString() }, "new certificates of the CA are in force");
        changed();
      }),
    checks: () => [expiryCheck("CA", { fault, endsAt: chainEndsAt(), now: clock.now() })],
    stop: stopWarning,
  };
}

function serverCertificate(
  { baseDir, mesh, clock, log }: IdentityOptions,
  authority: Authority | undefined,
): Promise<ServerCertificate | undefined> {
  const clientRoots = (): readonly string[] | undefined =>
    authority && [bundlePem(authority.material.roots), ...authority.material.intermediates.map(({ pem }) => pem)];
  const given = givenCertificate({ directory: join(baseDir, "etc/certs"), clientRoots, clock, log });
  if (authority === undefined) return given;
  const { podNamespace: namespace, clusterDomain, customHosts } = mesh.settings;
  const dnsNames = serverNames({ namespace, clusterDomain, customHosts });
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
