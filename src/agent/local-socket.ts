import { chmod, lstat, mkdir, unlink } from "node:fs/promises";
import { connect } from "node:net";
import { dirname } from "node:path";
import { EdgeError, messageOf } from "../base/errors.ts";

/** Longest path a Unix socket can have on Linux. */
const LONGEST_PATH = 107;

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

/** Makes the directory of a socket, for its owner alone, and removes a socket that a process which ended left behind. */
export async function prepareSocket(path: string): Promise<void> {
  if (Buffer.byteLength(path) > LONGEST_PATH)
    throw new EdgeError("usage", `the path of the socket ${path} is longer than ${LONGEST_PATH} bytes`, {
      hint: "use a shorter ISTIO_HOME",
    });
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
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

/** Lets nobody but the user of this process open a socket that was bound. */
export const restrictSocket = (path: string): Promise<void> => chmod(path, 0o600);
