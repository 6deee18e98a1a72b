import { HTTP2_ERROR, Http2Fault } from "./frame.ts";
import type { Header } from "./header-table.ts";

/** What a request says of itself before its content. Values of a name that comes again are joined with a comma. */
export type RequestHead = ReadonlyMap<string, string>;

const PSEUDO: ReadonlySet<string> = new Set([":method", ":scheme", ":authority", ":path"]);
const NEEDED = [":method", ":scheme", ":path"];
/** Names that mean something between two hops of HTTP/1.1 only. */
const CONNECTION_HEADERS: ReadonlySet<string> = new Set(["connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade"]);
/** Of RFC 9113, 8.2.1: no capitals, nothing that is not visible. */
const BAD_NAME = /[^!-9;-@[-~]/;
const BAD_VALUE = /[\0\r\n]/;

/** Judges the headers of a request (RFC 9113, 8.2 and 8.3). Throws `Http2Fault` for the stream alone. */
export function requestHead(stream: number, headers: readonly Header[]): RequestHead {
  const head = new Map<string, string>();
  let regular = false;
  for (const { name, value } of headers) {
    const before = head.get(name);
    if (name.startsWith(":")) {
      if (regular || before !== undefined || !PSEUDO.has(name)) throw malformed(stream, `the header ${name} is out of place`);
    } else {
      regular = true;
      checkRegular(stream, name, value);
    }
    if (BAD_VALUE.test(value)) throw malformed(stream, `the header ${name} has an impossible value`);
    head.set(name, before === undefined ? value : `${before}, ${value}`);
  }
  for (const name of NEEDED) if ((head.get(name) ?? "") === "") throw malformed(stream, `the header ${name} is missing`);
  return head;
}

/** Trailers have no pseudo headers. What they say is not used. */
export function checkTrailers(stream: number, headers: readonly Header[]): void {
  for (const { name, value } of headers) checkRegular(stream, name, value);
}

function checkRegular(stream: number, name: string, value: string): void {
  if (name === "" || BAD_NAME.test(name)) throw malformed(stream, "a header has an impossible name");
  if (CONNECTION_HEADERS.has(name) || (name === "te" && value !== "trailers"))
    throw malformed(stream, `the header ${name} has no place in HTTP/2`);
}

const malformed = (stream: number, message: string): Http2Fault => new Http2Fault(HTTP2_ERROR.PROTOCOL_ERROR, message, stream);
