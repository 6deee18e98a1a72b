import { INITIAL_WINDOW } from "./frame.ts";

/** What a client may send unasked once it has shown that it has much to say, and that somebody reads it. */
const GROWN_WINDOW = 256 * 1024;

/**
 * What a client may still send, on a connection or on one of its streams. It begins with what the protocol begins with, so that clients whom nobody reads yet
 * cost no more; it grows with the first half of that which is read, since to be told so again and again costs a busy server more than all else of receiving.
 */
export class ReceiveWindow {
  #left = INITIAL_WINDOW;
  #size = INITIAL_WINDOW;
  #read = 0;

  /** Whether the client may send this. */
  take(bytes: number): boolean {
    this.#left -= bytes;
    return this.#left >= 0;
  }

  /** What was taken has been read. Gives by how much the window is to be opened; 0 where it is not worth telling yet. */
  read(bytes: number): number {
    this.#read += bytes;
    if (this.#read < this.#size / 2) return 0;
    const opened = this.#read + GROWN_WINDOW - this.#size;
    this.#size = GROWN_WINDOW;
    this.#left += opened;
    this.#read = 0;
    return opened;
  }
}
