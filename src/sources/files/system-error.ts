/** The code of a system error (`ENOENT`), or "" for anything else. */
export function errorCode(error: unknown): string {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "";
}

/** Says in a few words why the system refused, and what to do about it. */
export function systemReason(error: unknown): string {
  const code = errorCode(error);
  return REASONS[code] ?? (code === "" ? String(error) : code);
}

/** Nothing is there under that name (any more). */
export const isMissing = (error: unknown): boolean => errorCode(error) === "ENOENT" || errorCode(error) === "ENOTDIR";

const REASONS: Readonly<Record<string, string>> = {
  EACCES: "permission denied: make it readable for the user that runs this process",
  EPERM: "permission denied: make it readable for the user that runs this process",
  ELOOP: "it is a link that leads back to itself: remove it or point it at a file",
  EMFILE: "too many open files: raise the limit (ulimit -n)",
  ENFILE: "too many open files on this machine: raise fs.file-max",
  ENOENT: "it does not exist",
  ENOTDIR: "a part of its path is not a directory",
  EIO: "the disk reported an input/output error",
  ESTALE: "the network file system lost it: mount it again",
};
