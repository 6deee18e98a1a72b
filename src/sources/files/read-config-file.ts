import { isUtf8 } from "node:buffer";
import { closeSync, constants, fstatSync, open, read } from "node:fs";
import { promisify } from "node:util";
import { contentHash } from "../../base/hash.ts";
import { type FileLimits, MAX_FILE_BYTES_SETTING } from "./file-limits.ts";
import { type FileStats, fileStats } from "./file-stats.ts";
import { isMissing, systemReason } from "./system-error.ts";

/** What a file held when it was read, or why it could not be. */
export type FileReading =
  | { readonly type: "text"; readonly bytes: NonSharedBuffer; readonly hash: string; readonly stats: FileStats }
  | { readonly type: "fault"; readonly fault: string; readonly stats: FileStats | undefined }
  | { readonly type: "gone" };

const openFile = promisify(open);
const readFile = promisify(read);

/**
 * Reads one file, never more of it than allowed. Never throws. What may wait for a disk is asynchronous; asking about and closing an
 * open descriptor does not wait, and doing that at once halves the time a thousand small files take.
 */
export async function readConfigFile(path: string, limits: FileLimits): Promise<FileReading> {
  let descriptor: number | undefined;
  try {
    // Not blocking: a named pipe put in the place of a file must not hold us.
    descriptor = await openFile(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const stats = fstatSync(descriptor);
    if (!stats.isFile()) return { type: "gone" };
    if (stats.size > limits.maxFileBytes) return { type: "fault", fault: tooLarge(stats.size, limits), stats: fileStats(stats) };
    const bytes = await readBytes(descriptor, stats.size);
    return { ...judged(bytes), stats: fileStats(stats) };
  } catch (error) {
    return isMissing(error)
      ? { type: "gone" }
      : { type: "fault", fault: `the file cannot be read: ${systemReason(error)}`, stats: undefined };
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

/** The first `size` bytes, fewer where the file shrank meanwhile; the next look at its stats tells. */
async function readBytes(descriptor: number, size: number): Promise<NonSharedBuffer> {
  // Slow: with memory of their own, that can be let go of.
  const bytes = Buffer.allocUnsafeSlow(size);
  let length = 0;
  while (length < size) {
    const { bytesRead } = await readFile(descriptor, bytes, length, size - length, length);
    if (bytesRead === 0) break;
    length += bytesRead;
  }
  return bytes.subarray(0, length);
}

/** The text of a file, to be taken once: the bytes are let go of now, not when they are collected. */
export function takeText({ bytes }: FileReading & { type: "text" }): string {
  const text = bytes.toString("utf8");
  bytes.buffer.transfer(0);
  return text;
}

function judged(bytes: NonSharedBuffer): { type: "text"; bytes: NonSharedBuffer; hash: string } | { type: "fault"; fault: string } {
  if (bytes.includes(0)) return { type: "fault", fault: "the file is binary (it contains zero bytes), not YAML or JSON" };
  if (!isUtf8(bytes)) return { type: "fault", fault: "the file is not UTF-8 text" };
  return { type: "text", bytes, hash: contentHash(bytes) };
}

function tooLarge(size: number, limits: FileLimits): string {
  return `the file has ${inMegabytes(size)} MB; the limit is ${inMegabytes(limits.maxFileBytes)} MB: split it, or raise ${MAX_FILE_BYTES_SETTING}`;
}

const inMegabytes = (bytes: number): string => String(Math.round((bytes / (1024 * 1024)) * 10) / 10);
