import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../base/clock.ts";
import { messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { writeWholeFile } from "../base/whole-file.ts";
import type { CertificateApi } from "../ca/certificate-api.ts";
import type { MeshConfig } from "../gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import { type Certificate, readCertificates } from "../pki/certificate.ts";
import { bundlePem } from "../pki/chain.ts";
import { followPemFiles, readPemFiles } from "../pki/pem-files.ts";

export interface SignerRootsOptions {
  readonly baseDir: string;
  readonly mesh: Pick<MeshConfig, "caCertificates">;
  readonly api: Pick<CertificateApi, "bundle">;
  readonly clock: Clock;
  readonly log: Log;
  /** Some signer has other roots than before. */
  changed(): void;
}

/** Who vouches for certificates of the cluster's signers. */
export interface SignerRoots {
  /** Resolves when it is known what the cluster publishes about a signer, or after a while without it. */
  ready(signer: string): Promise<void>;
  /**
   * The roots of a signer; none where nobody names any. Which source counts: `caCertificates` of MeshConfig that name the signer, the file that is mounted for it,
   * its ClusterTrustBundles, and at last the root that a chain of its ends with, which is remembered.
   */
  of(signer: string, chain?: readonly Certificate[]): readonly Certificate[];
  /** Signers that MeshConfig names roots for. */
  configured(): readonly string[];
  meshChanged(mesh: Pick<MeshConfig, "caCertificates">): void;
  stop(): void;
}

/** Where Istio's charts mount the roots of another CA, and where roots are kept that came with certificates. */
const DIRECTORY = "etc/external-ca-cert";
const FILE = "root-cert.pem";
const KEPT = "var/lib/istio/signer-roots.json";

/** Begins with what is mounted and what was learned before the last restart. */
export async function followSignerRoots(options: SignerRootsOptions): Promise<SignerRoots> {
  const { baseDir, api, clock, log, changed } = options;
  const directory = join(baseDir, DIRECTORY);
  const files = await readPemFiles(directory, [FILE]);
  let mounted = files.texts.get(FILE)?.reveal() ?? "";
  let { mesh } = options;
  const learned = await keptRoots(join(baseDir, KEPT), log);
  const followed = new Set<string>();
  const read = remembered(log);
  const bundleOf = (signer: string): string => {
    const bundle = api.bundle(signer);
    if (!followed.has(signer)) bundle.follow(changed);
    followed.add(signer);
    return bundle.current;
  };
  const stop = followPemFiles({
    directory,
    names: [FILE],
    clock,
    since: files,
    changed({ texts }) {
      mounted = texts.get(FILE)?.reveal() ?? "";
      changed();
    },
  });
  return {
    async ready(signer) {
      bundleOf(signer);
      await api.bundle(signer).ready();
    },
    of(signer, chain = []) {
      const own = chain.filter(({ isSelfSigned, isCa }) => isSelfSigned && isCa);
      for (const text of [pemFor(mesh, signer), mounted, bundleOf(signer)]) {
        const roots = read(signer, text);
        if (roots.length > 0) return roots;
      }
      if (own.length > 0 && learned.add(signer, bundlePem(own))) changed();
      return read(signer, learned.get(signer));
    },
    configured: () => mesh.caCertificates.flatMap(({ certSigners }) => certSigners),
    meshChanged(next) {
      mesh = next;
      changed();
    },
    stop,
  };
}

const pemFor = ({ caCertificates }: Pick<MeshConfig, "caCertificates">, signer: string): string =>
  caCertificates
    .flatMap(({ certSigners, certificateData: data }) => (certSigners.includes(signer) && data.case === "pem" ? [`${data.value}\n`] : []))
    .join("");

/** Reads each text once, and says once where one cannot be read: then the next source counts. */
function remembered(log: Log): (signer: string, text: string) => readonly Certificate[] {
  const known = new Map<string, readonly Certificate[]>();
  return (signer, text) => {
    if (text.trim() === "") return [];
    const found = known.get(text);
    if (found !== undefined) return found;
    const certificates = readCertificates(text);
    if (typeof certificates === "string") log.warn({ signer, reason: certificates }, "roots of a signer cannot be read and do not count");
    if (known.size > 100) known.clear();
    known.set(text, typeof certificates === "string" ? [] : certificates);
    return known.get(text) ?? [];
  };
}

interface LearnedRoots {
  get(signer: string): string;
  /** Whether that is news. */
  add(signer: string, pem: string): boolean;
}

/** Roots that came with certificates, kept so that what they signed is believed after a restart as well. */
async function keptRoots(file: string, log: Log): Promise<LearnedRoots> {
  const roots = new Map<string, string>();
  try {
    for (const [signer, pem] of Object.entries(JSON.parse(await readFile(file, "utf8")) as Readonly<Record<string, unknown>>))
      if (typeof pem === "string") roots.set(signer, pem);
  } catch {
    // None were kept.
  }
  let writing = Promise.resolve();
  return {
    get: (signer) => roots.get(signer) ?? "",
    add(signer, pem) {
      if (roots.get(signer) === pem) return false;
      roots.set(signer, pem);
      const text = `${JSON.stringify(Object.fromEntries(roots))}\n`;
      writing = writing
        .then(() => writeWholeFile(file, text))
        .catch((error: unknown) => log.warn({ file, reason: messageOf(error) }, "roots of a signer cannot be kept for the next start"));
      return true;
    },
  };
}
