/** Pieces from this size on are kept as they came. */
const LARGE_BYTES = 1_024;
/** Room that is made for smaller ones. */
const BLOCK_BYTES = 4_096;

/**
 * Content that waits, in the pieces in which it came. Who sends it cuts it as small as it likes, and each byte by itself would cost a hundred, and keep all of the read that brought it:
 * so small pieces are copied together when more comes, and what waits takes about as much memory as it has bytes. One that is taken at once is not copied.
 */
export class Pieces {
  #pieces: Buffer[] = [];
  #newest: Buffer | undefined;
  /** Of which the last piece is the beginning, where that was put together here. */
  #block: Buffer | undefined;
  #size = 0;

  /** Bytes in all. */
  get size(): number {
    return this.#size;
  }

  push(piece: Buffer): void {
    if (piece.length === 0) return;
    if (this.#newest !== undefined) this.#keep(this.#newest);
    this.#newest = piece;
    this.#size += piece.length;
  }

  /** The oldest piece; undefined where there is none. */
  shift(): Buffer | undefined {
    const kept = this.#pieces.shift();
    const piece = kept ?? this.#newest;
    if (kept === undefined) this.#newest = undefined;
    if (this.#pieces.length === 0) this.#block = undefined;
    this.#size -= piece?.length ?? 0;
    return piece;
  }

  /** All of it in one buffer, which is copied only if it came in pieces. Nothing waits any more. */
  takeAll(): Buffer {
    const all = this.#newest === undefined ? this.#pieces : [...this.#pieces, this.#newest];
    const [only] = all;
    const joined = only !== undefined && all.length === 1 ? only : Buffer.concat(all, this.#size);
    this.clear();
    return joined;
  }

  clear(): void {
    this.#pieces = [];
    this.#newest = undefined;
    this.#block = undefined;
    this.#size = 0;
  }

  #keep(piece: Buffer): void {
    if (piece.length >= LARGE_BYTES) {
      this.#block = undefined;
      this.#pieces.push(piece);
      return;
    }
    const last = this.#pieces.length - 1;
    const used = this.#block === undefined ? 0 : (this.#pieces[last]?.length ?? 0);
    if (this.#block !== undefined && used + piece.length <= this.#block.length) {
      piece.copy(this.#block, used);
      this.#pieces[last] = this.#block.subarray(0, used + piece.length);
      return;
    }
    this.#block = Buffer.allocUnsafeSlow(BLOCK_BYTES);
    piece.copy(this.#block);
    this.#pieces.push(this.#block.subarray(0, piece.length));
  }
}
