import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { messageOf } from "../../base/errors.ts";

/** A file as it is found: its text, or that it is not there, or why it cannot be used. */
export type FileRead =
  | { readonly state: "text"; readonly text: string }
  | { readonly state: "absent" }
  | { readonly state: "unreadable"; readonly message: string };

/** Configuration of a mesh is small; what is larger is a mistake, and reading it would stop everybody else. */
export const MAX_FILE_BYTES = 4 * 1024 * 1024;

/** Reads a small text file. Never blocks on a pipe, never reads more than {@link MAX_FILE_BYTES}, refuses what is not UTF-8 text. */
export async function readTextFile(path: string): Promise<FileRead> {
  let file: FileHandle;
  try {
    file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    return isAbsence(error) ? { state: "absent" } : { state: "unreadable", message: messageOf(error) };
  }
  try {
    const found = await file.stat();
    if (!found.isFile()) return { state: "unreadable", message: "is not a regular file" };
    const bytes = found.size > MAX_FILE_BYTES ? undefined : await readUpTo(file, MAX_FILE_BYTES);
    if (bytes === undefined) return { state: "unreadable", message: tooLarge(found.size) };
    return decode(bytes);
  } catch (error) {
    return { state: "unreadable", message: messageOf(error) };
  } finally {
    await file.close();
  }
}

/** The whole content, or undefined where there is more than `limit`: the file may have grown since it was looked at. */
async function readUpTo(file: FileHandle, limit: number): Promise<Uint8Array | undefined> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  while (length <= limit) {
    const { bytesRead, buffer } = await file.read(Buffer.alloc(64 * 1024), 0, 64 * 1024, null);
    if (bytesRead === 0) return Buffer.concat(chunks);
    chunks.push(buffer.subarray(0, bytesRead));
    length += bytesRead;
  }
  return undefined;
}

function decode(bytes: Uint8Array): FileRead {
  if (bytes.includes(0)) return { state: "unreadable", message: "is binary, not text" };
  try {
    return { state: "text", text: new TextDecoder("utf-8", { fatal: true }).decode(bytes) };
  } catch {
    return { state: "unreadable", message: "is not UTF-8 text" };
  }
}

const tooLarge = (bytes: number): string =>
  `is ${(bytes / 1024 / 1024).toFixed(1)} MB; at most ${MAX_FILE_BYTES / 1024 / 1024} MB are read`;

const isAbsence = (error: unknown): boolean =>
  error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR");
