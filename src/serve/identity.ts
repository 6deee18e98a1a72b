import { type Caller, createAuthenticator } from "../authn/authenticator.ts";
import { AuthnError } from "../authn/authn-error.ts";
import type { TokenVerifier } from "../authn/token-verifier.ts";
import type { Clock } from "../base/clock.ts";
import { messageOf } from "../base/errors.ts";
import { limitedLog } from "../base/limited-log.ts";
import type { Log } from "../base/log.ts";
import { together } from "../base/together.ts";
import type { Signer } from "../ca/authority.ts";
import type { CertificateApi } from "../ca/certificate-api.ts";
import { CREATE_CERTIFICATE, certificateService } from "../ca/certificate-service.ts";
import type { RootStore } from "../ca/root-store.ts";
import type { LoadedMesh } from "../config/mesh/load-mesh.ts";
import { bundlePem, mergeBundles } from "../pki/chain.ts";
import { parseHostPort } from "../settings/host-port.ts";
import type { Peer } from "../wire/discovery-stream.ts";
import type { UnaryMethod } from "../wire/grpc-server.ts";
import type { TlsCredentials } from "../wire/tls-listener.ts";
import { type ActingCallersOptions, actingCallers } from "./acting-callers.ts";
import type { ClusterRoot } from "./cluster-link.ts";
import { startClusterSigning } from "./cluster-signing.ts";
import { delegatedCa } from "./delegated-ca.ts";
import { expiryCheck } from "./expiry-check.ts";
import type { HealthCheck } from "./health.ts";
import type { IdentityMetrics } from "./identity-metrics.ts";
import { type JoinTokens, openJoinTokens } from "./join-tokens.ts";
import { startOwnCa } from "./own-ca.ts";
import type { ServerCertificate } from "./own-certificate.ts";
import { type Signing, serverCertificate } from "./server-certificate.ts";
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
  /** Objects in force: where pods run. */
  readonly objects: ActingCallersOptions["objects"];
  /** The cluster's API for certificates; undefined where there is none that may be used. */
  readonly certificates?: CertificateApi | undefined;
  /** Where a cluster keeps the CA; undefined where it is in files. */
  rootStore?(root: ClusterRoot): RootStore | undefined;
  /** Other roots are in force. */
  rootsChanged(): void;
}

/** Who callers are and who we are: what the secure port needs. */
export interface Identity {
  /** Undefined where there is neither a CA nor a certificate given to us: then no secure port can be opened. Also as long as the CA is not known. */
  readonly tls: TlsCredentials | undefined;
  /** The CA is still to be found: nothing is signed. */
  readonly isIncomplete: boolean;
  /** Calls back when a CA that was not known at the start is in force, at once where that was meanwhile. */
  whenComplete(done: () => void): void;
  /** The CA's gRPC methods; none where the CA is off. */
  readonly methods: Readonly<Record<string, UnaryMethod>>;
  /** Rejects with `AuthnError`. */
  authenticate(peer: Peer): Promise<Caller>;
  /** Roots that workloads are to trust, in PEM; empty where there is no CA here. */
  roots(): string;
  /** Roots that the control plane is verified with, and workloads too, in PEM: what pods and the API server are given. */
  publishedRoots(): string;
  /** Lists of certificates that our own CA has revoked, in PEM; empty where there are none. */
  revoked(): string;
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
  const signs = options.secure && options.mesh.process.services.ca;
  let shown: ShownCertificate | undefined;
  const rootsChanged = (): void => {
    shown?.current?.refresh();
    options.rootsChanged();
  };
  const [joinTokens, signing] = await together([
    signs ? openJoinTokens(baseDir, clock) : undefined,
    options.secure ? startSigning(options, { signs, rootsChanged }) : NOBODY_SIGNS,
  ]);
  const callers = believedCallers(options, joinTokens);
  const { ca, delegated, cluster } = signing;
  shown = await showCertificate(options, signing, rootsChanged);
  const server = shown;
  ca?.follow(rootsChanged);
  const signer = delegated ?? ca;
  const roots = (): string => delegated?.roots() ?? (ca?.authority === undefined ? "" : bundlePem(ca.authority.material.roots));
  return {
    get tls() {
      return server.current;
    },
    get isIncomplete() {
      return server.isAwaited;
    },
    whenComplete: server.whenThere,
    methods: signer === undefined ? {} : { [CREATE_CERTIFICATE]: signingMethod(options, signer, callers.authenticate) },
    authenticate: callers.authenticate,
    joinTokens,
    roots,
    revoked: () => ca?.authority?.material.revoked ?? "",
    publishedRoots: () => mergeBundles([roots(), server.current?.roots() ?? ""]),
    checks: () => [
      ...(ca?.checks() ?? []),
      ...(delegated?.checks() ?? []),
      ...(server.current ? [serverCheck(server.current, clock)] : []),
    ],
    meshChanged(next) {
      if (next.process.ca.address !== callers.mesh.process.ca.address) log.warn("ca.address changed; that takes effect at the next start");
      callers.meshChanged(next);
      cluster?.meshChanged(next);
    },
    stop() {
      ca?.stop();
      delegated?.stop();
      cluster?.stop();
      server.current?.stop();
    },
  };
}

interface BelievedCallers extends Pick<Identity, "authenticate" | "meshChanged"> {
  readonly mesh: LoadedMesh;
}

/** Who is believed: owners of our certificates and of tokens whose issuers the mesh knows. */
function believedCallers({ baseDir, clock, cluster, ...options }: IdentityOptions, joinTokens: JoinTokens | undefined): BelievedCallers {
  let { mesh } = options;
  const issuers = tokenIssuers({ baseDir, clock, proxies: mesh.settings });
  const verifiersOf = (): readonly TokenVerifier[] => [
    ...(joinTokens ? [joinTokens.verifier] : []),
    ...issuers(mesh.process.tokenIssuers),
    ...(cluster ? [cluster] : []),
  ];
  let verifiers = verifiersOf();
  const authenticator = createAuthenticator({
    clock,
    verifiers: () => verifiers,
    trustDomains: () => [mesh.mesh.trustDomain, ...mesh.mesh.trustDomainAliases],
  });
  return {
    get mesh() {
      return mesh;
    },
    authenticate: ({ address, certificate, certificateFault, header }) =>
      authenticator.authenticate({
        certificate,
        authorization: header("authorization"),
        cluster: header("clusterid"),
        address: hostOf(address),
        ...(certificateFault !== undefined && { certificateFault }),
      }),
    meshChanged(next) {
      mesh = next;
      verifiers = verifiersOf();
    },
  };
}

/** Each connection has a port of its own, which says nothing of who calls. */
function hostOf(address: string): string {
  const at = parseHostPort(address);
  return typeof at === "string" ? address : at.host;
}

/** The certificate of this server. */
interface ShownCertificate {
  readonly current: ServerCertificate | undefined;
  /** There is none yet because the CA is still looked for. */
  readonly isAwaited: boolean;
  /** Calls back once one that was awaited is there. */
  whenThere(done: () => void): void;
}

/** Gets the server a certificate, now or when the CA is found. */
async function showCertificate(options: IdentityOptions, signing: Signing, changed: () => void): Promise<ShownCertificate> {
  const there = Promise.withResolvers<void>();
  let isAwaited = signing.ca !== undefined && signing.ca.authority === undefined;
  let current = options.secure ? await serverCertificate(options, signing) : undefined;
  const found = async (): Promise<void> => {
    current ??= await serverCertificate(options, signing);
    isAwaited = false;
    changed();
    there.resolve();
  };
  signing.ca?.whenFound(
    () =>
      void found().catch((error: unknown) => options.log.error({ reason: messageOf(error) }, "there is no certificate for this server")),
  );
  return {
    get current() {
      return current;
    },
    get isAwaited() {
      return isAwaited;
    },
    whenThere: (done) => void there.promise.then(done),
  };
}

const NOBODY_SIGNS: Signing = { ca: undefined, delegated: undefined, cluster: undefined };

interface SigningStart {
  /** Whether certificates of workloads are given out here. */
  readonly signs: boolean;
  rootsChanged(): void;
}

/** Finds out who signs, and starts what of it is ours. */
async function startSigning(options: IdentityOptions, { signs, rootsChanged }: SigningStart): Promise<Signing> {
  const { baseDir, mesh, clock, log, certificates: api } = options;
  const cluster = await startClusterSigning({ baseDir, mesh, signs, api, clock, log, rootsChanged });
  if (!signs) return { ...NOBODY_SIGNS, cluster };
  const { ca: settings } = mesh.mesh;
  const delegated =
    settings !== undefined && settings.address !== ""
      ? await delegatedCa({ baseDir, settings, clock, log, rootsChanged })
      : cluster?.workloads;
  // As in Istio: where signers of the cluster sign for workloads only, the control plane has a CA for its own certificate.
  const ownSigns = delegated === undefined || (cluster !== undefined && cluster.server === undefined);
  return { ca: ownSigns ? await startOwnCa(options) : undefined, delegated, cluster };
}

function signingMethod(
  { mesh, clock, log, metrics, objects }: IdentityOptions,
  signer: Signer,
  authenticate: (peer: Peer) => Promise<Caller>,
): UnaryMethod {
  const { trustedNodeAccounts: nodeAccounts, trustedControlPlanes: controlPlanes, clusterId } = mesh.settings;
  return certificateService({
    signer,
    actingFault: actingCallers({ nodeAccounts, controlPlanes, clusterId, objects }),
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

const serverCheck = (server: ServerCertificate, clock: Clock): HealthCheck =>
  expiryCheck("server certificate", { fault: server.fault, endsAt: server.endsAt, now: clock.now(), renewsItself: true });
