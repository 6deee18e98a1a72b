import { isIPv6 } from "node:net";

/** An IP address as a number: comparable, and cheap to test against ranges. */
export interface Ip {
  readonly family: 4 | 6;
  readonly value: bigint;
}

/** A range of addresses. `base` has all bits after the prefix cleared. */
export interface Cidr {
  readonly family: 4 | 6;
  readonly base: bigint;
  readonly prefix: number;
}

const BITS = { 4: 32, 6: 128 } as const;

/** 4 or 6 for the text of an IP address, 0 for anything else (a host name, a range). */
export const ipFamily = (text: string): 0 | 4 | 6 => (isIpv4(text) ? 4 : text.includes(":") && isIPv6(text) ? 6 : 0);

const [DOT, ZERO] = [0x2e, 0x30];

/** What `isIPv4` of Node says by a regular expression. It is asked of every endpoint, more than once. */
function isIpv4(text: string): boolean {
  let parts = 0;
  let value = 0;
  let digits = 0;
  for (let at = 0; at <= text.length; at++) {
    const code = at === text.length ? DOT : text.charCodeAt(at);
    if (code === DOT) {
      if (digits === 0 || value > 255) return false;
      parts += 1;
      value = 0;
      digits = 0;
      continue;
    }
    const digit = code - ZERO;
    if (digit < 0 || digit > 9 || (digits > 0 && value === 0)) return false;
    value = 10 * value + digit;
    digits += 1;
  }
  return parts === 4;
}

/** Whether a text is an IP address of either family. */
export const isIp = (text: string): boolean => ipFamily(text) !== 0;

/** Reads an address; undefined where the text is none. A zone (`fe80::1%eth0`) is left out: it means nothing on another machine. */
export function parseIp(text: string): Ip | undefined {
  const family = ipFamily(text);
  if (family === 4) return { family, value: valueOfIpv4(text) };
  if (family === 6) return { family, value: valueOfIpv6(text.split("%", 1)[0] ?? text) };
  return undefined;
}

/**
 * Writes an address the one way RFC 5952 asks for: lower case, no leading zeros, the first longest run of zeros as `::`, and an IPv4 address
 * inside of an IPv6 one as such.
 */
export function formatIp(ip: Ip): string {
  if (ip.family === 4) return formatIpv4(ip.value);
  if (ip.value >> 32n === MAPPED) return `::ffff:${formatIpv4(ip.value)}`;
  const groups = Array.from({ length: 8 }, (_, i) => Number((ip.value >> BigInt(112 - 16 * i)) & 0xffffn));
  const { start, length } = longestZeroRun(groups);
  const hex = (part: readonly number[]): string => part.map((group) => group.toString(16)).join(":");
  return length < 2 ? hex(groups) : `${hex(groups.slice(0, start))}::${hex(groups.slice(start + length))}`;
}

/** What the addresses of `::ffff:0:0/96` begin with. */
const MAPPED = 0xffffn;

const formatIpv4 = (value: bigint): string => [24n, 16n, 8n, 0n].map((shift) => (value >> shift) & 0xffn).join(".");

/** A host as it stands before a port or in a URL: an IPv6 address in brackets. */
export const bracketed = (host: string): string => (host.includes(":") ? `[${host}]` : host);

/** `host:port`, or `[v6]:port`. */
export const hostPort = (host: string, port: number | string): string => `${bracketed(host)}:${port}`;

/** One spelling per IPv6 address, so that addresses can be keys; other text is returned as it is. */
export function canonicalAddress(text: string): string {
  if (!text.includes(":")) return text;
  const ip = parseIp(text);
  return ip === undefined ? text : formatIp(ip);
}

/** Reads `10.0.0.0/8`; a bare address is a range of one. Undefined where the text is neither. */
export function parseCidr(text: string): Cidr | undefined {
  const [address = "", length, ...rest] = text.split("/");
  const ip = parseIp(address);
  if (ip === undefined || rest.length > 0) return undefined;
  const bits = BITS[ip.family];
  if (length === undefined) return { family: ip.family, base: ip.value, prefix: bits };
  const prefix = /^\d{1,3}$/.test(length) ? Number(length) : -1;
  if (prefix < 0 || prefix > bits) return undefined;
  const hostBits = BigInt(bits - prefix);
  return { family: ip.family, base: (ip.value >> hostBits) << hostBits, prefix };
}

/** `10.0.0.0/8`, or the bare address for a range of one. */
export function formatCidr(cidr: Cidr): string {
  const address = formatIp({ family: cidr.family, value: cidr.base });
  return cidr.prefix === BITS[cidr.family] ? address : `${address}/${cidr.prefix}`;
}

/** `10.0.0.1/32` and `10.0.0.1` are one address; ranges lose the bits after their prefix. Other texts stay as they are. */
export function canonicalCidr(text: string): string {
  const cidr = parseCidr(text);
  return cidr === undefined ? text : formatCidr(cidr);
}

/** Whether an address lies in a range; never, where the families differ. */
export function cidrContains(cidr: Cidr, ip: Ip): boolean {
  if (cidr.family !== ip.family) return false;
  const hostBits = BigInt(BITS[cidr.family] - cidr.prefix);
  return cidr.base >> hostBits === ip.value >> hostBits;
}

/** Whether the whole of `inner` lies in `outer`. */
export const cidrCovers = (outer: Cidr, inner: Cidr): boolean =>
  outer.prefix <= inner.prefix && cidrContains(outer, { family: inner.family, value: inner.base });

/** The address that stands for all addresses of a family: what a listener for everything binds. */
export const unspecifiedAddress = (family: 4 | 6): string => (family === 4 ? "0.0.0.0" : "::");

/** Order for lists of addresses: IPv4 before IPv6, then by number; text that is no address comes last, alphabetically. */
export function compareAddresses(a: string, b: string): number {
  const [left, right] = [parseIp(a), parseIp(b)];
  if (left === undefined || right === undefined) {
    if (left !== undefined) return -1;
    if (right !== undefined) return 1;
    return a < b ? -1 : a > b ? 1 : 0;
  }
  if (left.family !== right.family) return left.family - right.family;
  return left.value < right.value ? -1 : left.value > right.value ? 1 : 0;
}

const valueOfIpv4 = (text: string): bigint => text.split(".").reduce((value, part) => (value << 8n) | BigInt(part), 0n);

function valueOfIpv6(text: string): bigint {
  const lastColon = text.lastIndexOf(":");
  const tail = text.slice(lastColon + 1);
  if (tail.includes(".")) {
    const v4 = valueOfIpv4(tail);
    return valueOfIpv6(`${text.slice(0, lastColon + 1)}${(v4 >> 16n).toString(16)}:${(v4 & 0xffffn).toString(16)}`);
  }
  const [head = "", rest] = text.split("::", 2);
  const left = head === "" ? [] : head.split(":");
  const right = rest === undefined || rest === "" ? [] : rest.split(":");
  const middle = rest === undefined ? [] : Array<string>(8 - left.length - right.length).fill("0");
  return [...left, ...middle, ...right].reduce((value, group) => (value << 16n) | BigInt(`0x${group}`), 0n);
}

function longestZeroRun(groups: readonly number[]): { readonly start: number; readonly length: number } {
  let best = { start: 0, length: 0 };
  for (let start = 0; start < groups.length; start++) {
    let length = 0;
    while (groups[start + length] === 0) length++;
    if (length > best.length) best = { start, length };
  }
  return best;
}
