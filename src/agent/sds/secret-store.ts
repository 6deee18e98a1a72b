import { isAbsolute, join } from "node:path";
import { getCACertificates } from "node:tls";
import type { Clock } from "../../base/clock.ts";
import { contentHash } from "../../base/hash.ts";
import type { Log } from "../../base/log.ts";
import { Secret } from "../../base/secret.ts";
import { followPemFiles, type PemFiles, readPemFiles } from "../../pki/pem-files.ts";
import type { WorkloadIdentity } from "../identity/workload-identity.ts";
import { certificateSecret, rootsSecret } from "./secret-bytes.ts";

/** A secret as it goes to Envoy. */
export interface ServedSecret {
  readonly bytes: Buffer;
  /** Changes exactly when the content does. */
  readonly version: string;
}

/** The secrets this agent has. */
export interface SecretStore {
  /** Whether a name is ours to serve; others are the control plane's. */
  owns(name: string): boolean;
  /** Calls back with the secret as soon as there is one and after each change. Gives a function that stops it. */
  watch(name: string, changed: (secret: ServedSecret) => void): () => void;
}

export interface SecretStoreOptions {
  readonly baseDir: string;
  readonly identity: WorkloadIdentity;
  /** The workload's certificate and roots are served by somebody else: only files are ours. */
  readonly onlyFiles?: boolean;
  readonly clock: Clock;
  readonly log: Log;
}

const WORKLOAD = "default";
const ROOTS = "ROOTCA";
/** Where injection mounts the CA's lists of revoked certificates. */
const REVOKED = "var/run/secrets/istio/crl/ca-crl.pem";
const LIST = "-----BEGIN X509 CRL-----";
const FILE_CERT = "file-cert:";
const FILE_ROOT = "file-root:";
const PLATFORM_ROOTS = "file-root:system";

/** Whether a name is that of the workload's certificate or of the roots of the mesh. */
export const isIdentity = (name: string): boolean => name === WORKLOAD || name === ROOTS;

/** Certificate and roots of the workload, and files on this machine that the configuration names. */
export function createSecretStore(options: SecretStoreOptions): SecretStore {
  const { identity } = options;
  return {
    owns: (name) => (isIdentity(name) && options.onlyFiles !== true) || name.startsWith(FILE_CERT) || name.startsWith(FILE_ROOT),
    watch(name, changed) {
      if (name === WORKLOAD)
        return follow(identity, () => identity.current && certificateSecret(name, identity.current.chain, identity.current.key), changed);
      if (name === ROOTS) return watchRoots(changed, options);
      if (name === PLATFORM_ROOTS) {
        changed(served(rootsSecret(name, getCACertificates("system").join("\n"))));
        return () => {};
      }
      return watchFiles(name, changed, options);
    },
  };
}

/** What is made of an identity, whenever that changes and gives something else. */
function follow(identity: WorkloadIdentity, make: () => Buffer | undefined, changed: (secret: ServedSecret) => void): () => void {
  let last = "";
  const look = (): void => {
    const bytes = make();
    if (bytes === undefined) return;
    const secret = served(bytes);
    if (secret.version !== last) changed(secret);
    last = secret.version;
  };
  const stop = identity.follow(look);
  look();
  return stop;
}

/**
 * The roots of the mesh, and with them what the CA has revoked, where injection mounted such a list (ConfigMap `istio-ca-crl`). Peers are not verified without it
 * before it was looked for. One that vanishes stays in force; one that is emptied does not.
 */
function watchRoots(changed: (secret: ServedSecret) => void, { baseDir, identity, clock }: SecretStoreOptions): () => void {
  const path = join(baseDir, REVOKED);
  let revoked = "";
  let stops: readonly (() => void)[] = [];
  let stopped = false;
  const take = ({ texts }: PemFiles): void => {
    const text = texts.get(path)?.reveal();
    if (text !== undefined) revoked = text.includes(LIST) ? text : "";
  };
  const make = (): Buffer | undefined => (identity.roots() === "" ? undefined : rootsSecret(ROOTS, identity.roots(), revoked));
  void readPemFiles("/", [path]).then((files) => {
    if (stopped) return;
    take(files);
    const restart = (): (() => void) => follow(identity, make, changed);
    let stopRoots = restart();
    const stopFiles = followPemFiles({
      directory: "/",
      names: [path],
      clock,
      since: files,
      changed(now) {
        take(now);
        stopRoots();
        stopRoots = restart();
      },
    });
    stops = [() => stopRoots(), stopFiles];
  });
  return () => {
    stopped = true;
    for (const stop of stops) stop();
  };
}

/** Files are looked at every second; one that is missing or half written changes nothing. */
function watchFiles(name: string, changed: (secret: ServedSecret) => void, { baseDir, clock, log }: SecretStoreOptions): () => void {
  const paths = pathsOf(name).map((path) => (isAbsolute(path) ? path : join(baseDir, path)));
  let stop: () => void = () => {};
  let stopped = false;
  const take = (files: PemFiles): void => {
    const texts = paths.map((path) => files.texts.get(path)?.reveal());
    if (texts.includes(undefined)) {
      log.warn(
        { secret: name, missing: [...files.absent, ...files.unreadable].join(", ") },
        "files of a secret cannot be read; waiting for them",
      );
      return;
    }
    const [first = "", second = ""] = texts;
    changed(served(name.startsWith(FILE_CERT) ? certificateSecret(name, first, new Secret(second)) : rootsSecret(name, first)));
  };
  void readPemFiles("/", paths).then((files) => {
    if (stopped) return;
    take(files);
    stop = followPemFiles({ directory: "/", names: paths, clock, since: files, changed: take });
  });
  return () => {
    stopped = true;
    stop();
  };
}

/** `file-cert:CERTIFICATE~KEY` and `file-root:ROOTS`. */
const pathsOf = (name: string): readonly string[] =>
  name.startsWith(FILE_CERT) ? name.slice(FILE_CERT.length).split("~") : [name.slice(FILE_ROOT.length)];

const served = (bytes: Buffer): ServedSecret => ({ bytes, version: contentHash(bytes) });
