import { createPrivateKey, X509Certificate } from "node:crypto";
import { access, mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../../base/clock.ts";
import { messageOf } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { Secret } from "../../base/secret.ts";
import { writeWholeFile } from "../../base/whole-file.ts";
import type { IdentityOptions, WorkloadIdentity } from "./workload-identity.ts";

/** Names of the copies. */
export const CERTIFICATE_FILES = { chain: "cert-chain.pem", key: "key.pem", roots: "root-cert.pem" } as const;

export interface Copies {
  readonly directory: string;
  /** Anybody may read them, the key too: in a pod, they are for the other containers, which may run as other users. */
  readonly forAll: boolean;
  readonly log: Log;
}

/** Keeps copies of certificate, key and roots in a directory, for programs that read files. Gives a function that stops. */
export function copyCertificates(identity: WorkloadIdentity, { directory, forAll, log }: Copies): () => void {
  const mode = forAll ? 0o644 : 0o600;
  let writing = Promise.resolve();
  return identity.follow(() => {
    const { current } = identity;
    if (current === undefined) return;
    const roots = identity.roots();
    writing = writing.then(async () => {
      try {
        await mkdir(directory, { recursive: true, mode: forAll ? 0o755 : 0o700 });
        await writeWholeFile(join(directory, CERTIFICATE_FILES.roots), roots, 0o644);
        await writeWholeFile(join(directory, CERTIFICATE_FILES.key), current.key.reveal(), mode);
        await writeWholeFile(join(directory, CERTIFICATE_FILES.chain), current.chain, mode);
      } catch (error) {
        log.error({ directory, reason: messageOf(error) }, "copies of the certificate cannot be written");
      }
    });
  });
}

/** Whether all of them are there: the certificate is written last. */
export const hasCopies = (directory: string): Promise<boolean> =>
  access(join(directory, CERTIFICATE_FILES.chain)).then(
    () => true,
    () => false,
  );

/** What an earlier run left, where it is still valid: with it a machine whose token ran out, or whose control plane is away, goes on. */
export async function readEarlierCertificate(directory: string, clock: Pick<Clock, "now">): Promise<EarlierCertificate | undefined> {
  try {
    const read = (file: string): Promise<string> => readFile(join(directory, file), "utf8");
    const [chain, key, roots] = [
      await read(CERTIFICATE_FILES.chain),
      await read(CERTIFICATE_FILES.key),
      await read(CERTIFICATE_FILES.roots),
    ];
    const leaf = new X509Certificate(chain);
    const fits = leaf.validToDate.getTime() > clock.now() && leaf.checkPrivateKey(createPrivateKey(key));
    return fits ? { certificate: { chain, key: new Secret(key) }, roots } : undefined;
  } catch {
    return undefined;
  }
}

export type EarlierCertificate = NonNullable<IdentityOptions["earlier"]>;
