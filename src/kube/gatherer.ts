/** So much is gathered before it is looked at: an object that is not all there yet is begun again when more has come. */
const LEAST_BYTES = 64 * 1024;

/** Gathers bytes that come in chunks of any size, and hands over what there is again and again, together with what was left of it the last time. */
export class Gatherer {
  readonly #walk: (bytes: Buffer) => number;
  /** What came and is not used yet. */
  #waiting: Buffer[] = [];
  #length = 0;
  #wanted = LEAST_BYTES;

  /** `walk` goes as far as it can and says how far it got. */
  constructor(walk: (bytes: Buffer) => number) {
    this.#walk = walk;
  }

  /** What is left over must double before it is looked at again, or an object of many chunks would be walked for each of them. */
  add(chunk: Buffer): void {
    this.#waiting.push(chunk);
    this.#length += chunk.length;
    if (this.#length >= this.#wanted) this.flush();
  }

  /** Hands over all that there is. */
  flush(): void {
    const [first] = this.#waiting;
    const bytes = first !== undefined && this.#waiting.length === 1 ? first : Buffer.concat(this.#waiting, this.#length);
    const rest = bytes.subarray(this.#walk(bytes));
    this.#waiting = rest.length === 0 ? [] : [rest];
    this.#length = rest.length;
    this.#wanted = Math.max(LEAST_BYTES, 2 * rest.length);
  }
}
