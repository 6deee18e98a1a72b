import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { dirname } from "node:path";

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
      await mkdir(dirname(path), { recursive: true, mode: 0o700 });
      await writeFile(`${path}.new~`, bytes, { mode: 0o600 });
      await rename(`${path}.new~`, path);
    } catch {
      // Said above.
    }
  },
});
