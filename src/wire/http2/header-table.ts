export interface Header {
  readonly name: string;
  readonly value: string;
}

/** Headers that have a number by themselves, from 1 (RFC 7541, appendix A). */
const STATIC: readonly Header[] = [
  { name: ":authority", value: "" },
  { name: ":method", value: "GET" },
  { name: ":method", value: "POST" },
  { name: ":path", value: "/" },
  { name: ":path", value: "/index.html" },
  { name: ":scheme", value: "http" },
  { name: ":scheme", value: "https" },
  ...["200", "204", "206", "304", "400", "404", "500"].map((value) => ({ name: ":status", value })),
  { name: "accept-charset", value: "" },
  { name: "accept-encoding", value: "gzip, deflate" },
  ...[
    "accept-language",
    "accept-ranges",
    "accept",
    "access-control-allow-origin",
    "age",
    "allow",
    "authorization",
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-length",
    "content-location",
    "content-range",
    "content-type",
    "cookie",
    "date",
    "etag",
    "expect",
    "expires",
    "from",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "last-modified",
    "link",
    "location",
    "max-forwards",
    "proxy-authenticate",
    "proxy-authorization",
    "range",
    "referer",
    "refresh",
    "retry-after",
    "server",
    "set-cookie",
    "strict-transport-security",
    "transfer-encoding",
    "user-agent",
    "vary",
    "via",
    "www-authenticate",
  ].map((name) => ({ name, value: "" })),
];

/** What each header takes of a table or a list beyond its letters, as the protocol counts. */
export const HEADER_OVERHEAD = 32;
export const headerSize = ({ name, value }: Header): number => name.length + value.length + HEADER_OVERHEAD;

/** Headers that a client refers to by number: those that always have one, then those it has sent before, the newest first. */
export class HeaderTable {
  /** The newest last. */
  readonly #sent: Header[] = [];
  #size = 0;
  #maxSize: number;

  constructor(maxSize: number) {
    this.#maxSize = maxSize;
  }

  get(index: number): Header | undefined {
    return index <= STATIC.length ? STATIC[index - 1] : this.#sent[this.#sent.length - (index - STATIC.length)];
  }

  /** One that is larger than the table empties it. */
  add(header: Header): void {
    this.#sent.push(header);
    this.#size += headerSize(header);
    this.#evict();
  }

  resize(maxSize: number): void {
    this.#maxSize = maxSize;
    this.#evict();
  }

  #evict(): void {
    while (this.#size > this.#maxSize) {
      const oldest = this.#sent.shift();
      if (oldest === undefined) return;
      this.#size -= headerSize(oldest);
    }
  }
}
