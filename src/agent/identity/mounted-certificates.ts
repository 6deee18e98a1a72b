import { join } from "node:path";
import type { Clock } from "../../base/clock.ts";
import { Secret } from "../../base/secret.ts";
import { keyPairFault, rootsFault } from "../../pki/key-pair.ts";
import { followPemFiles, type PemFiles, readPemFiles } from "../../pki/pem-files.ts";
import { CERTIFICATE_FILES as FILES } from "./certificate-copies.ts";
import type { CertificateSource } from "./workload-identity.ts";

/** Certificates from files that somebody else keeps fresh (FILE_MOUNTED_CERTS). A set that is missing, half written or does not fit together changes nothing. */
export const mountedCertificates =
  (directory: string, clock: Clock): CertificateSource =>
  async (give, signal) => {
    const names = Object.values(FILES);
    const look = ({ texts, absent, unreadable }: PemFiles): void => {
      const text = (name: string): string => texts.get(name)?.reveal() ?? "";
      const [chain, key, roots] = [text(FILES.chain), text(FILES.key), text(FILES.roots)];
      const missing = [...absent.map((name) => `${join(directory, name)} is not there`), ...unreadable];
      const unfit = keyPairFault({ chain, key });
      const untrusted = rootsFault(roots);
      if (missing.length > 0) give.fail(`the workload has no certificate from files: ${missing.join(", ")}`);
      else if (unfit !== undefined)
        give.fail(`${join(directory, unfit.part === "key" ? FILES.key : FILES.chain)} cannot be used: ${unfit.message}`);
      else if (untrusted !== undefined) give.fail(`${join(directory, FILES.roots)} cannot be used: ${untrusted}`);
      else give.take({ chain, key: new Secret(key) }, roots);
    };
    const since = await readPemFiles(directory, names);
    if (signal.aborted) return;
    look(since);
    signal.addEventListener("abort", followPemFiles({ directory, names, clock, since, changed: look }), { once: true });
  };
