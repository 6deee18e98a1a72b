/** One file of an archive. */
export interface TarFile {
  readonly path: string;
  readonly text: string;
  readonly mode: number;
}

const BLOCK = 512;

/** An archive in the POSIX format (ustar), owned by root. Paths have at most 100 characters. */
export function tarOf(files: readonly TarFile[], now: number): Buffer {
  const parts = files.flatMap(({ path, text, mode }) => {
    const content = Buffer.from(text);
    return [header(path, { size: content.length, mode, now }), content, Buffer.alloc(padding(content.length))];
  });
  return Buffer.concat([...parts, Buffer.alloc(2 * BLOCK)]);
}

const padding = (size: number): number => (BLOCK - (size % BLOCK)) % BLOCK;

function header(path: string, { size, mode, now }: { readonly size: number; readonly mode: number; readonly now: number }): Buffer {
  const block = Buffer.alloc(BLOCK);
  const octal = (value: number, digits: number): string => `${value.toString(8).padStart(digits, "0")}\0`;
  block.write(path, 0, 100);
  block.write(octal(mode, 7), 100);
  block.write(octal(0, 7), 108);
  block.write(octal(0, 7), 116);
  block.write(octal(size, 11), 124);
  block.write(octal(Math.floor(now / 1_000), 11), 136);
  block.write("        0", 148);
  block.write("ustar\0", 257);
  block.write("00", 263);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return block;
}
