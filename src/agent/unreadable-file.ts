import { constants, open } from "node:fs/promises";

/**
 * The first of these files that is there and that this user may not read, as a sentence; undefined where there is none. Who unpacks a bundle as root and runs the agent as
 * another user is to be told that, and not that there is no file.
 */
export async function unreadableFile(files: readonly string[]): Promise<string | undefined> {
  for (const file of files) {
    const fault = await open(file, constants.O_RDONLY | constants.O_NONBLOCK).then(
      (handle) => handle.close(),
      (error: NodeJS.ErrnoException) => error.code,
    );
    if (fault === "EACCES" || fault === "EPERM") return `${file} may not be read by user ${process.geteuid?.() ?? ""}`;
  }
  return undefined;
}
