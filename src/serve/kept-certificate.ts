import { readFile } from "node:fs/promises";
import { messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { Secret } from "../base/secret.ts";
import { writeWholeFile } from "../base/whole-file.ts";
import { type Certificate, readCertificates } from "../pki/certificate.ts";
import { bundlePem } from "../pki/chain.ts";
import { readPrivateKey } from "../pki/keys.ts";

/** A certificate with its key, and since when it is in force. */
export interface HeldCertificate {
  readonly chain: readonly Certificate[];
  readonly key: Secret<string>;
  readonly since: number;
}

/** The certificate of a control plane, kept so that a process that is started anew has one while the API server is away, and asks for no other. */
export interface KeptCertificate {
  /** What was kept and fits together; whether it is still of use is for the caller to see. */
  read(): Promise<HeldCertificate | undefined>;
  write(held: HeldCertificate): void;
}

export interface KeptCertificateOptions {
  /** Readable for its owner only; undefined keeps nothing. */
  readonly file: string | undefined;
  /** That of another signer does not count. */
  readonly signer: string;
  readonly log: Log;
}

/** Keeps it in a file; what cannot be kept is told, and costs nothing but a question after a restart. */
export function keptCertificate({ file, signer, log }: KeptCertificateOptions): KeptCertificate {
  let writing = Promise.resolve();
  return {
    async read() {
      if (file === undefined) return undefined;
      try {
        const kept = JSON.parse(await readFile(file, "utf8")) as Partial<{ signer: string; chain: string; key: string; since: number }>;
        const chain = readCertificates(kept.chain ?? "");
        const key = readPrivateKey(kept.key ?? "");
        if (kept.signer !== signer || typeof chain === "string" || typeof key === "string" || !chain[0]?.x509.checkPrivateKey(key))
          return undefined;
        return { chain, key: new Secret(kept.key ?? ""), since: kept.since ?? chain[0].notBefore };
      } catch {
        return undefined;
      }
    },
    write({ chain, key, since }) {
      if (file === undefined) return;
      const content = new Secret(`${JSON.stringify({ signer, chain: bundlePem(chain), key: key.reveal(), since })}\n`);
      writing = writing
        .then(() => writeWholeFile(file, content.reveal()))
        .catch((error: unknown) =>
          log.warn({ file, reason: messageOf(error) }, "the server certificate cannot be kept for the next start"),
        );
    },
  };
}
