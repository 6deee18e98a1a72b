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
  readonly clock: Clock;
  readonly log: Log;
}

const WORKLOAD = "default";
const ROOTS = "ROOTCA";
const FILE_CERT = "file-cert:";
const FILE_ROOT = "file-root:";
const PLATFORM_ROOTS = "file-root:system";

/** Certificate and roots of the workload, and files on this machine that the configuration names. */
export function createSecretStore(options: SecretStoreOptions): SecretStore {
  const { identity } = options;
  const fromIdentity = (make: () => Buffer | undefined, changed: (secret: ServedSecret) => void): (() => void) => {
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
  };
  return {
    owns: (name) => name === WORKLOAD || name === ROOTS || name.startsWith(FILE_CERT) || name.startsWith(FILE_ROOT),
    watch(name, changed) {
      if (name === WORKLOAD)
        return fromIdentity(() => identity.current && certificateSecret(name, identity.current.chain, identity.current.key), changed);
      if (name === ROOTS) return fromIdentity(() => (identity.roots() === "" ? undefined : rootsSecret(name, identity.roots())), changed);
      if (name === PLATFORM_ROOTS) {
        changed(served(rootsSecret(name, getCACertificates("system").join("\n"))));
        return () => {};
      }
      return watchFiles(name, changed, options);
    },
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
