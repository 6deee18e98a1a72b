import { readFile } from "node:fs/promises";
import { writeWholeFile } from "../../base/whole-file.ts";

/** The last message of a kind that a control plane gave (bootstrap, names), on disk. */
export interface BootstrapFile {
  read(): Promise<Uint8Array | undefined>;
  write(bytes: Uint8Array): Promise<void>;
}

/** Not being able to keep it is no reason not to start: the next start without a control plane will be. */
export const bootstrapFile = (path: string): BootstrapFile => ({
  read: () => readFile(path).catch(() => undefined),
  async write(bytes) {
    try {
      await writeWholeFile(path, bytes);
    } catch {
      // Said above.
    }
  },
});
