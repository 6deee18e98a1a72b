import { readFile } from "node:fs/promises";
import { writeWholeFile } from "../../base/whole-file.ts";

/** The last bootstrap that a control plane gave, on disk. */
export interface BootstrapFile {
  read(): Promise<Uint8Array | undefined>;
  write(bytes: Uint8Array): Promise<void>;
}

/** Not being able to keep it is no reason not to start: the next start without a control plane will be. */
export const bootstrapFile = (path: string): BootstrapFile => ({
  read: () =>
    readFile(path).then(
      (bytes) => (bytes.length === 0 ? undefined : bytes),
      () => undefined,
    ),
  async write(bytes) {
    try {
      await writeWholeFile(path, bytes);
    } catch {
      // Said above.
    }
  },
});
