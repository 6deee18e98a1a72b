/** A message as it travels over TCP: its length in two bytes, then itself. */
export function frame(message: Uint8Array): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(message.length);
  return Buffer.concat([length, message]);
}

/** Takes what comes on a connection apart into messages. Keeps at most one unfinished message. */
export class FrameReader {
  #rest: Buffer = Buffer.alloc(0);

  push(bytes: Uint8Array): readonly Buffer[] {
    this.#rest = this.#rest.length === 0 ? Buffer.from(bytes) : Buffer.concat([this.#rest, bytes]);
    const messages: Buffer[] = [];
    while (this.#rest.length >= 2 && this.#rest.length >= 2 + this.#rest.readUInt16BE(0)) {
      const end = 2 + this.#rest.readUInt16BE(0);
      messages.push(this.#rest.subarray(2, end));
      this.#rest = this.#rest.subarray(end);
    }
    return messages;
  }
}
