import { Buffer } from "node:buffer";

/** Types of records that we know; others are numbers. */
export const RECORD = { A: 1, CNAME: 5, SOA: 6, AAAA: 28, OPT: 41 } as const;
/** The internet's; others are not answered (RFC 1035 3.2.4). */
export const CLASS_IN = 1;

/** Outcomes (RFC 1035 4.1.1). */
export const RCODE = { NOERROR: 0, FORMERR: 1, SERVFAIL: 2, NXDOMAIN: 3, NOTIMP: 4, REFUSED: 5 } as const;

/** A name as in questions: labels in lower or upper case, separated by dots, without a dot at the end; the root is empty. */
export type DnsName = string;

export interface DnsQuestion {
  readonly name: DnsName;
  readonly type: number;
  readonly class: number;
}

/** What of a query decides the answer. */
export interface DnsQuery {
  readonly id: number;
  readonly opcode: number;
  readonly recursionDesired: boolean;
  readonly question: DnsQuestion;
  /** Largest answer that the client takes over UDP (EDNS); undefined where it does not say. */
  readonly udpSize: number | undefined;
}

/** A record of an answer of ours. */
export type DnsRecord =
  | { readonly type: "A" | "AAAA"; readonly name: DnsName; readonly ttl: number; readonly address: Uint8Array }
  | { readonly type: "CNAME"; readonly name: DnsName; readonly ttl: number; readonly target: DnsName };

export interface DnsAnswer {
  readonly rcode: number;
  /** The answer is ours, not somebody else's. */
  readonly authoritative: boolean;
  readonly records: readonly DnsRecord[];
  /** There is more, which the client gets over TCP. */
  readonly truncated?: boolean;
}

/** Length of the fixed part of a message. */
export const HEADER_BYTES = 12;
const FLAG_RESPONSE = 0x8000;
const FLAG_AUTHORITATIVE = 0x0400;
/** Says that the answer did not fit: ask again over TCP. */
export const FLAG_TRUNCATED = 0x0200;
const FLAG_RECURSION_DESIRED = 0x0100;
const FLAG_RECURSION_AVAILABLE = 0x0080;
const OUR_UDP_SIZE = 1_232;
const LEAST_UDP_SIZE = 512;
const LONGEST_LABEL = 63;
const LONGEST_NAME = 253;
const POINTER = 0xc0;

/** Id and kind of a message: enough to refuse what cannot be read further; undefined where not even that is there. */
export function readHeader(
  bytes: Uint8Array,
): { readonly id: number; readonly isResponse: boolean; readonly truncated: boolean; readonly rcode: number } | undefined {
  if (bytes.length < HEADER_BYTES) return undefined;
  const flags = uint16(bytes, 2);
  return { id: uint16(bytes, 0), isResponse: (flags & FLAG_RESPONSE) !== 0, truncated: (flags & FLAG_TRUNCATED) !== 0, rcode: flags & 0xf };
}

/** Reads a query with one question. Undefined for anything else: no input makes it throw, or read past the end. */
export function readQuery(bytes: Uint8Array): DnsQuery | undefined {
  const header = readHeader(bytes);
  if (header === undefined || header.isResponse || uint16(bytes, 4) !== 1) return undefined;
  const name = readName(bytes, HEADER_BYTES);
  if (name === undefined || name.end + 4 > bytes.length) return undefined;
  const flags = uint16(bytes, 2);
  return {
    id: header.id,
    opcode: (flags >> 11) & 0xf,
    recursionDesired: (flags & FLAG_RECURSION_DESIRED) !== 0,
    question: { name: name.name, type: uint16(bytes, name.end), class: uint16(bytes, name.end + 2) },
    udpSize: readUdpSize(bytes, name.end + 4),
  };
}

/** The question of a query or response, as bytes: a response must repeat it. Letters may differ in case. */
export function questionKey(bytes: Uint8Array): string | undefined {
  const name = readName(bytes, HEADER_BYTES);
  if (name === undefined || uint16(bytes, 4) !== 1 || name.end + 4 > bytes.length) return undefined;
  return `${name.name.toLowerCase()} ${uint16(bytes, name.end)} ${uint16(bytes, name.end + 2)}`;
}

/** The payload size in an OPT record, which stands among the additional ones. */
function readUdpSize(bytes: Uint8Array, start: number): number | undefined {
  const before = uint16(bytes, 6) + uint16(bytes, 8);
  const records = before + uint16(bytes, 10);
  let at = start;
  for (let index = 0; index < records; index++) {
    const name = readName(bytes, at);
    if (name === undefined || name.end + 10 > bytes.length) return undefined;
    const type = uint16(bytes, name.end);
    if (type === RECORD.OPT && index >= before) return Math.max(LEAST_UDP_SIZE, uint16(bytes, name.end + 2));
    at = name.end + 10 + uint16(bytes, name.end + 8);
  }
  return undefined;
}

/** Follows compression only backwards, so that it ends. Names with bytes that are not plain text are none we could know. */
function readName(bytes: Uint8Array, start: number): { readonly name: DnsName; readonly end: number } | undefined {
  const labels: string[] = [];
  let length = 0;
  let at = start;
  let end: number | undefined;
  let limit = start;
  for (;;) {
    const size = bytes[at];
    if (size === undefined) return undefined;
    if (size === 0) return { name: labels.join("."), end: end ?? at + 1 };
    if ((size & POINTER) === POINTER) {
      const low = bytes[at + 1];
      if (low === undefined) return undefined;
      const target = ((size & ~POINTER) << 8) | low;
      end ??= at + 2;
      if (target >= limit) return undefined;
      limit = target;
      at = target;
      continue;
    }
    length += size + 1;
    if (size > LONGEST_LABEL || length > LONGEST_NAME + 1 || at + 1 + size > bytes.length) return undefined;
    const label = Buffer.from(bytes.buffer, bytes.byteOffset + at + 1, size).toString("latin1");
    if (label.includes(".")) return undefined;
    labels.push(label);
    at += 1 + size;
  }
}

/** A query, for tests and tools. */
export function writeQuery(query: DnsQuery): Buffer {
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt16BE(query.id, 0);
  header.writeUInt16BE((query.opcode << 11) | (query.recursionDesired ? FLAG_RECURSION_DESIRED : 0), 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(query.udpSize === undefined ? 0 : 1, 10);
  return Buffer.concat([header, questionBytes(query.question), ...(query.udpSize === undefined ? [] : [optRecord(query.udpSize)])]);
}

/** Writes the answer to a query; records that do not fit into `limit` bytes are left out, and the client told so. */
export function writeAnswer(query: DnsQuery, { rcode, authoritative, records, truncated = false }: DnsAnswer, limit: number): Buffer {
  const header = Buffer.alloc(HEADER_BYTES);
  const parts = [header, questionBytes(query.question)];
  const opt = query.udpSize === undefined ? [] : [optRecord(OUR_UDP_SIZE)];
  let size = HEADER_BYTES + (parts[1]?.length ?? 0) + (opt[0]?.length ?? 0);
  let written = 0;
  for (const record of records) {
    const bytes = recordBytes(record, query.question.name);
    if (size + bytes.length > limit) break;
    parts.push(bytes);
    size += bytes.length;
    written += 1;
  }
  const flags =
    FLAG_RESPONSE |
    (query.opcode << 11) |
    (authoritative ? FLAG_AUTHORITATIVE : 0) |
    (truncated || written < records.length ? FLAG_TRUNCATED : 0) |
    (query.recursionDesired ? FLAG_RECURSION_DESIRED : 0) |
    FLAG_RECURSION_AVAILABLE |
    rcode;
  header.writeUInt16BE(query.id, 0);
  header.writeUInt16BE(flags, 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(written, 6);
  header.writeUInt16BE(opt.length, 10);
  return Buffer.concat([...parts, ...opt]);
}

/** Refuses what could not be read, by its header alone. */
export function writeRefusal(id: number, rcode: number): Buffer {
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt16BE(id, 0);
  header.writeUInt16BE(FLAG_RESPONSE | rcode, 2);
  return header;
}

/** How much may be sent to a client over UDP. */
export const udpLimit = ({ udpSize }: DnsQuery): number => Math.min(udpSize ?? LEAST_UDP_SIZE, 4_096);

const questionBytes = ({ name, type, class: number }: DnsQuestion): Buffer =>
  Buffer.concat([nameBytes(name), uint16Bytes(type), uint16Bytes(number)]);

function recordBytes(record: DnsRecord, question: DnsName): Buffer {
  // The name of most records is that of the question, which stands right behind the header.
  const name = record.name === question ? uint16Bytes((POINTER << 8) | HEADER_BYTES) : nameBytes(record.name);
  const data = record.type === "CNAME" ? nameBytes(record.target) : record.address;
  const fixed = Buffer.alloc(10);
  fixed.writeUInt16BE(RECORD[record.type], 0);
  fixed.writeUInt16BE(CLASS_IN, 2);
  fixed.writeUInt32BE(record.ttl, 4);
  fixed.writeUInt16BE(data.length, 8);
  return Buffer.concat([name, fixed, data]);
}

function optRecord(size: number): Buffer {
  const record = Buffer.alloc(11);
  record.writeUInt16BE(RECORD.OPT, 1);
  record.writeUInt16BE(size, 3);
  return record;
}

function nameBytes(name: DnsName): Buffer {
  const labels = name === "" ? [] : name.split(".");
  return Buffer.concat([...labels.flatMap((label) => [Buffer.of(label.length), Buffer.from(label, "latin1")]), Buffer.of(0)]);
}

const uint16 = (bytes: Uint8Array, at: number): number => ((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0);

function uint16Bytes(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16BE(value);
  return bytes;
}
