import { constants } from "node:fs";
import { copyFile, mkdir, mkdtemp, open, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Clock } from "../base/clock.ts";
import { EdgeError, messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { followPemFiles, type PemFiles, readPemFiles } from "../pki/pem-files.ts";
import { CA_FILES, type CaMaterial, type CaTexts, REVOKED_FILE, readCaMaterial } from "./ca-material.ts";
import { makeRoot } from "./make-root.ts";
import type { RootStore } from "./root-store.ts";

export interface FileRootOptions {
  /** `etc/cacerts` under the base directory. */
  readonly directory: string;
  /** Of a root that is made here. */
  readonly trustDomain: string;
  readonly rootTtlMs: number;
  readonly clock: Clock;
  readonly log: Log;
}

const NAMES = [...CA_FILES, REVOKED_FILE];

/** The CA in four files of a directory, as Istio's plug-in certificates have them, and what it revoked in a fifth; they may be replaced at any time. */
export function fileRootStore(options: FileRootOptions): RootStore {
  const { directory, clock, log } = options;
  let loaded: PemFiles | undefined;
  const judge = (files: PemFiles): CaMaterial | string => incomplete(directory, files) ?? readCaMaterial(textsOf(files), clock.now());
  return {
    place: directory,
    async load() {
      let files = await readPemFiles(directory, NAMES);
      if (files.texts.size === 0 && files.unreadable.length === 0) {
        await makeInPlace(options);
        log.info({ directory }, "a new root certificate was made; keep its key safe");
        files = await readPemFiles(directory, NAMES);
      }
      const material = judge(files);
      if (typeof material === "string") throw unusable(directory, material);
      loaded = files;
      return material;
    },
    follow(news) {
      if (loaded === undefined) throw new Error("followed before it was loaded");
      const changed = (files: PemFiles): void => {
        const material = judge(files);
        news(typeof material === "string" ? { fault: material } : { material });
      };
      return followPemFiles({ directory, names: NAMES, clock, since: loaded, changed });
    },
  };
}

function incomplete(directory: string, files: PemFiles): string | undefined {
  const [first] = files.unreadable;
  if (first !== undefined) return first;
  const absent = files.absent.filter((name) => name !== REVOKED_FILE);
  return absent.length === 0
    ? undefined
    : `${absent.join(", ")} ${absent.length === 1 ? "is" : "are"} missing in ${directory}, where other files of a CA are`;
}

const textsOf = ({ texts }: PemFiles): CaTexts => {
  const text = (name: keyof CaTexts): string => texts.get(name)?.reveal() ?? "";
  return {
    "ca-cert.pem": text("ca-cert.pem"),
    "ca-key.pem": text("ca-key.pem"),
    "cert-chain.pem": text("cert-chain.pem"),
    "root-cert.pem": text("root-cert.pem"),
    "ca-crl.pem": text("ca-crl.pem"),
  };
};

const unusable = (directory: string, reason: string): EdgeError =>
  new EdgeError("ca_unusable", `the CA in ${directory} cannot be used: ${reason}`, {
    hint: "restore the files; only where all four are absent a new root is made. `services: {ca: false}` runs without a CA",
  });

/** Makes a root so that a crash leaves all of it or nothing: the files are written beside the directory, which is then renamed into place. */
async function makeInPlace({ directory, trustDomain, rootTtlMs, clock }: FileRootOptions): Promise<void> {
  const texts = (await makeRoot({ trustDomain, now: clock.now(), ttlMs: rootTtlMs })).reveal();
  try {
    await mkdir(dirname(directory), { recursive: true });
    const fresh = await mkdtemp(`${directory}.new-`);
    try {
      for (const name of CA_FILES) await writeDurably(join(fresh, name), texts[name]);
      await rename(fresh, directory).catch((error: unknown) => moveInto(fresh, directory, error));
    } finally {
      await rm(fresh, { recursive: true, force: true });
    }
  } catch (error) {
    throw new EdgeError("ca_unusable", `no root certificate can be made in ${directory}: ${messageOf(error)}`, {
      cause: error,
      hint: "the directory must be writable at the first start, or hold a CA; `services: {ca: false}` runs without a CA",
    });
  }
}

/** The directory is there and not empty, or a mount: the files go into it one by one, and never over one that another process put there meanwhile. */
async function moveInto(fresh: string, directory: string, cause: unknown): Promise<void> {
  const code = cause instanceof Error && "code" in cause ? cause.code : undefined;
  if (code !== "ENOTEMPTY" && code !== "EEXIST" && code !== "EBUSY") throw cause;
  if ((await readPemFiles(directory, CA_FILES)).texts.size > 0) return;
  for (const name of CA_FILES) await copyFile(join(fresh, name), join(directory, name), constants.COPYFILE_EXCL);
}

async function writeDurably(path: string, text: string): Promise<void> {
  const file = await open(path, "wx", 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
}
