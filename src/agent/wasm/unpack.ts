import { promisify } from "node:util";
import { gunzip } from "node:zlib";

const unzip = promisify(gunzip);
const WASM_MAGIC = Buffer.from([0, 0x61, 0x73, 0x6d]);
const BLOCK = 512;

/** Whether bytes begin as a Wasm module does. */
export const isWasm = (bytes: Buffer): boolean => bytes.length >= 8 && bytes.subarray(0, 4).equals(WASM_MAGIC);

/** The module in bytes that may be packed by gzip, tar or both; unpacked, too, it has at most so many bytes. Throws where there is none. */
export async function unpackModule(bytes: Buffer, mostBytes: number, wanted?: string): Promise<Buffer> {
  let content = bytes;
  if (isGzip(content)) content = await unzip(content, { maxOutputLength: mostBytes });
  if (isTar(content)) content = fileInTar(content, wanted);
  if (isGzip(content)) content = await unzip(content, { maxOutputLength: mostBytes });
  if (!isWasm(content)) throw new Error("it holds no Wasm module");
  return content;
}

const isGzip = (bytes: Buffer): boolean => bytes[0] === 0x1f && bytes[1] === 0x8b;
const isTar = (bytes: Buffer): boolean => bytes.length >= BLOCK && bytes.toString("latin1", 257, 262) === "ustar";

/** The file of that name in whatever directory, or the first file. */
function fileInTar(archive: Buffer, wanted: string | undefined): Buffer {
  for (let at = 0; at + BLOCK <= archive.length; ) {
    const header = archive.subarray(at, at + BLOCK);
    const name = header.toString("utf8", 0, 100).replace(/\0.*$/s, "");
    if (name === "") break;
    const size = Number.parseInt(header.toString("latin1", 124, 136).trim(), 8);
    if (!Number.isInteger(size) || size < 0) break;
    const type = header.toString("latin1", 156, 157);
    const isFile = type === "0" || type === "\0";
    if (isFile && (wanted === undefined || name.split("/").at(-1) === wanted)) return archive.subarray(at + BLOCK, at + BLOCK + size);
    at += BLOCK + Math.ceil(size / BLOCK) * BLOCK;
  }
  throw new Error(wanted === undefined ? "its archive holds no file" : `its archive holds no ${wanted}`);
}
