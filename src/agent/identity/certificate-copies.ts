import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../../base/clock.ts";
import { messageOf } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { Secret } from "../../base/secret.ts";
import { writeWholeFile } from "../../base/whole-file.ts";
import type { IdentityOptions, WorkloadIdentity } from "./workload-identity.ts";

const FILES = { chain: "cert-chain.pem", key: "key.pem", roots: "root-cert.pem" } as const;

/** Keeps copies of certificate, key and roots in a directory, for programs that read files. Gives a function that stops. */
export function copyCertificates(identity: WorkloadIdentity, directory: string, log: Log): () => void {
  let writing = Promise.resolve();
  return identity.follow(() => {
    const { current } = identity;
    if (current === undefined) return;
    const roots = identity.roots();
    writing = writing.then(async () => {
      try {
        await writeWholeFile(join(directory, FILES.roots), roots, 0o644);
        await writeWholeFile(join(directory, FILES.key), current.key.reveal(), 0o600);
        await writeWholeFile(join(directory, FILES.chain), current.chain, 0o600);
      } catch (error) {
        log.error({ directory, reason: messageOf(error) }, "copies of the certificate cannot be written");
      }
    });
  });
}

/** What an earlier run left, where it is still valid: with it a machine whose token ran out, or whose control plane is away, goes on. */
export async function readEarlierCertificate(directory: string, clock: Pick<Clock, "now">): Promise<EarlierCertificate | undefined> {
  try {
    const read = (file: string): Promise<string> => readFile(join(directory, file), "utf8");
    const [chain, key, roots] = [await read(FILES.chain), await read(FILES.key), await read(FILES.roots)];
    const leaf = new X509Certificate(chain);
    const fits = leaf.validToDate.getTime() > clock.now() && leaf.checkPrivateKey(createPrivateKey(key));
    return fits ? { certificate: { chain, key: new Secret(key) }, roots } : undefined;
  } catch {
    return undefined;
  }
}

type EarlierCertificate = NonNullable<IdentityOptions["earlier"]>;
