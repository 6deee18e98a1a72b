import { createPrivateKey, X509Certificate } from "node:crypto";
import { access, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../../base/clock.ts";
import { EdgeError, messageOf } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { Secret } from "../../base/secret.ts";
import { writeWholeFiles } from "../../base/whole-file.ts";
import type { IdentityOptions, WorkloadIdentity } from "./workload-identity.ts";

/** Names of the copies. */
export const CERTIFICATE_FILES = { chain: "cert-chain.pem", key: "key.pem", roots: "root-cert.pem" } as const;

export interface Copies {
  readonly directory: string;
  /** Anybody may read them, the key too: in a pod, they are for the other containers, which may run as other users. */
  readonly forAll: boolean;
  readonly clock: Clock;
  readonly log: Log;
}

/** How soon copies that could not be written are tried again. */
const AGAIN_MS = 10_000;

/** Keeps copies of certificate, key and roots in a directory, for programs that read files and for the next start. Gives a function that stops. */
export function copyCertificates(identity: WorkloadIdentity, { directory, forAll, clock, log }: Copies): () => void {
  const mode = forAll ? 0o644 : 0o600;
  const file = (name: string, content: string, fileMode = mode) => ({ path: join(directory, name), content, mode: fileMode });
  let writing = Promise.resolve();
  let cancel: () => void = () => {};
  const write = (): void => {
    const { current } = identity;
    if (current === undefined) return;
    cancel();
    const { roots, key, chain } = CERTIFICATE_FILES;
    const files = [file(roots, identity.roots(), 0o644), file(key, current.key.reveal()), file(chain, current.chain)];
    writing = writing.then(async () => {
      try {
        await makePlace({ directory, forAll });
        await writeWholeFiles(files);
      } catch (error) {
        log.error({ directory, reason: messageOf(error), retryMs: AGAIN_MS }, "copies of the certificate cannot be written");
        cancel = clock.after(AGAIN_MS, write);
      }
    });
  };
  const forget = identity.follow(write);
  return () => {
    forget();
    cancel();
  };
}

/** Rejects where a disk is full: who asks then for a certificate with a token that is good for one has neither after the next start. */
export async function assertRoomForCopies({ directory, forAll }: Pick<Copies, "directory" | "forAll">): Promise<void> {
  const probe = join(directory, ".room");
  try {
    await makePlace({ directory, forAll });
    await writeFile(probe, Buffer.alloc(COPIES_BYTES), { mode: 0o600 });
  } catch (error) {
    if (!FULL.includes((error as NodeJS.ErrnoException).code ?? "")) return; // Copying will say what is wrong.
    throw new EdgeError("state_unwritable", `there is no room for the certificate in ${directory}, so none is asked for`, {
      cause: error,
      hint: "make room on that disk",
    });
  } finally {
    await rm(probe, { force: true }).catch(() => {});
  }
}

const makePlace = ({ directory, forAll }: Pick<Copies, "directory" | "forAll">): Promise<unknown> =>
  mkdir(directory, { recursive: true, mode: forAll ? 0o755 : 0o700 });

const COPIES_BYTES = 32 * 1024;
const FULL: readonly string[] = ["ENOSPC", "EDQUOT"];

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
