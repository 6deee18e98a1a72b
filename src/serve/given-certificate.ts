import type { Clock } from "../base/clock.ts";
import { EdgeError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { Secret } from "../base/secret.ts";
import { readCertificates } from "../pki/certificate.ts";
import { bundlePem } from "../pki/chain.ts";
import { readPrivateKey } from "../pki/keys.ts";
import { followPemFiles, type PemFiles, readPemFiles } from "../pki/pem-files.ts";
import type { TlsMaterial } from "../wire/tls-listener.ts";
import type { ServerCertificate } from "./own-certificate.ts";

const FILES = ["cert-chain.pem", "key.pem", "root-cert.pem"] as const;

export interface GivenCertificateOptions {
  /** `etc/certs` under the base directory. */
  readonly directory: string;
  /** What clients are verified with; undefined takes `root-cert.pem` of the directory. */
  clientRoots(): readonly string[] | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

interface Given {
  readonly chain: string;
  readonly key: Secret<string>;
  readonly roots: string | undefined;
  readonly endsAt: number;
}

/**
 * A certificate from another CA, put into a directory and replaced there when it is renewed. Undefined where there is none; throws `EdgeError`
 * where there is one that cannot be used. A bad one that comes later leaves the last good in force.
 */
export async function givenCertificate(options: GivenCertificateOptions): Promise<ServerCertificate | undefined> {
  const { directory, clientRoots, clock, log } = options;
  const files = await readPemFiles(directory, FILES);
  if (!files.texts.has("cert-chain.pem") && !files.texts.has("key.pem") && files.unreadable.length === 0) return undefined;
  const first = judge(files, clock.now());
  if (typeof first === "string")
    throw new EdgeError("file_unreadable", `the certificate in ${directory} cannot be used: ${first}`, {
      hint: "correct the files, or remove them to have our own CA sign one",
    });
  let given = first;
  let fault: string | undefined;
  const followers = new Set<(material: TlsMaterial) => void>();
  const material = (): TlsMaterial => ({
    chain: given.chain,
    key: given.key,
    clientRoots: clientRoots() ?? (given.roots === undefined ? [] : [given.roots]),
  });
  const tell = (): void => {
    for (const follower of followers) follower(material());
  };
  const stop = followPemFiles({
    directory,
    names: FILES,
    clock,
    since: files,
    changed(next) {
      const judged = judge(next, clock.now());
      fault = typeof judged === "string" ? judged : undefined;
      if (typeof judged === "string") {
        log.error({ directory, reason: judged }, "the new server certificate is wrong; the last good one stays in force");
        return;
      }
      given = judged;
      log.info({ directory, ends: new Date(given.endsAt).toISOString() }, "a new server certificate is in force");
      tell();
    },
  });
  return {
    get current() {
      return material();
    },
    get endsAt() {
      return given.endsAt;
    },
    get fault() {
      return fault;
    },
    roots: () => given.roots ?? "",
    follow(changed) {
      followers.add(changed);
      return () => followers.delete(changed);
    },
    refresh: tell,
    stop,
  };
}

function judge({ texts, unreadable }: PemFiles, now: number): Given | string {
  const [chainText, keyText] = [texts.get("cert-chain.pem"), texts.get("key.pem")];
  if (unreadable[0] !== undefined) return unreadable[0];
  if (chainText === undefined || keyText === undefined) return `${chainText === undefined ? "cert-chain.pem" : "key.pem"} is missing`;
  const chain = readCertificates(chainText.reveal());
  if (typeof chain === "string") return `cert-chain.pem: ${chain}`;
  const key = readPrivateKey(keyText.reveal());
  if (typeof key === "string") return `key.pem: ${key}`;
  const rootText = texts.get("root-cert.pem")?.reveal();
  const roots = rootText === undefined ? undefined : readCertificates(rootText);
  if (typeof roots === "string") return `root-cert.pem: ${roots}`;
  const [leaf] = chain;
  if (leaf === undefined || !leaf.x509.checkPrivateKey(key)) return "key.pem is not the key of the first certificate in cert-chain.pem";
  if (leaf.notAfter <= now) return `the certificate ended on ${new Date(leaf.notAfter).toISOString()}`;
  return { chain: bundlePem(chain), key: keyText, roots: roots && bundlePem(roots), endsAt: leaf.notAfter };
}
