import { readFile } from "node:fs/promises";
import { messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { Secret } from "../base/secret.ts";
import { writeWholeFile } from "../base/whole-file.ts";
import type { CaTexts } from "../ca/ca-material.ts";
import type { CaSecretName } from "./root-secret.ts";

/** A CA as it was found, and in which Secret. */
export interface FoundCa {
  readonly name: CaSecretName;
  readonly texts: Secret<CaTexts>;
}

export interface KeptCaOptions {
  /** Readable for its owner only; undefined keeps nothing. */
  readonly file: string | undefined;
  /** The cluster that it is the CA of. */
  readonly server: string;
  readonly log: Log;
}

/** The CA of the cluster, kept so that a process that is started anew can sign while the API server is away. */
export interface KeptCa {
  read(): Promise<FoundCa | undefined>;
  write(found: FoundCa): void;
}

/** Keeps it in a file; one of another cluster does not count. */
export function keptCa({ file, server, log }: KeptCaOptions): KeptCa {
  let writing = Promise.resolve();
  return {
    async read() {
      if (file === undefined) return undefined;
      try {
        const kept = JSON.parse(await readFile(file, "utf8")) as Partial<{ server: string; name: CaSecretName; texts: CaTexts }>;
        if (kept.server !== server || kept.name === undefined || kept.texts === undefined) return undefined;
        return { name: kept.name, texts: new Secret(kept.texts) };
      } catch {
        return undefined;
      }
    },
    write({ name, texts }) {
      if (file === undefined) return;
      const content = new Secret(`${JSON.stringify({ server, name, texts: texts.reveal() })}\n`);
      writing = writing
        .then(() => writeWholeFile(file, content.reveal()))
        .catch((error) => log.warn({ file, reason: messageOf(error) }, "the CA cannot be kept for a start without the API server"));
    },
  };
}
