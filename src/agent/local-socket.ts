import { chmod, lstat, mkdir, unlink } from "node:fs/promises";
import { connect } from "node:net";
import { dirname } from "node:path";
import { EdgeError, messageOf } from "../base/errors.ts";

/** Longest path a Unix socket can have on Linux. */
const LONGEST_PATH = 107;

/** Who may open a socket. */
export type SocketAccess = "owner" | "all";

/** Whether somebody answers on a Unix socket. */
export function isServed(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path, () => {
      socket.destroy();
      resolve(true);
    });
    socket.on("error", () => resolve(false));
  });
}

/** Makes the directory of a socket, for its owner alone or for all, and removes a socket that a process which ended left behind. */
export async function prepareSocket(path: string, access: SocketAccess = "owner"): Promise<void> {
  if (Buffer.byteLength(path) > LONGEST_PATH)
    throw new EdgeError("usage", `the path of the socket ${path} is longer than ${LONGEST_PATH} bytes`, {
      hint: "use a shorter ISTIO_HOME",
    });
  try {
    await mkdir(dirname(path), { recursive: true, mode: access === "all" ? 0o755 : 0o700 });
    if (access === "all") await openToAll(dirname(path));
    const found = await lstat(path).catch(() => undefined);
    if (found === undefined) return;
    if (!found.isSocket()) throw new Error("something that is no socket is in its place");
    await unlink(path);
  } catch (error) {
    throw new EdgeError("file_unreadable", `the socket ${path} cannot be made: ${messageOf(error)}`, {
      cause: error,
      hint: "let this user write there and remove what is in its place, or set ISTIO_HOME to another directory",
    });
  }
}

async function openToAll(directory: string): Promise<void> {
  const { mode } = await lstat(directory);
  if ((mode & 0o055) !== 0o055) await chmod(directory, (mode & 0o777) | 0o055);
}

/** Lets nobody but the user of this process open a socket that was bound, or everybody. */
export const restrictSocket = (path: string, access: SocketAccess = "owner"): Promise<void> =>
  chmod(path, access === "all" ? 0o666 : 0o600);
