import { type Cidr, cidrContains, type Ip, parseCidr, parseIp } from "./address.ts";

/** Where a URL from configuration must never lead: this machine, its links, and services that hand out credentials to whoever asks. */
const BLOCKED: readonly Cidr[] = [
  "0.0.0.0/8",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "224.0.0.0/3",
  "100.100.100.200/32", // metadata, Alibaba Cloud
  "168.63.129.16/32", // wire server, Azure
  "192.0.0.192/32", // metadata, Oracle Cloud
  "::/127",
  "fe80::/10",
  "ff00::/8",
  "fd00:ec2::/32", // metadata and credentials of pods, AWS
  "fd20:ce::254/128", // metadata, Google Cloud
  "fd00:c1::a9fe:a9fe/128", // metadata, Oracle Cloud
  "fd00:42::42/128", // metadata, Scaleway
].flatMap((range) => parseCidr(range) ?? []);

/** IPv6 ranges that carry an IPv4 address (RFC 4291, 6052, 8215, 7915, 3056): how many bits stand after it. */
const CARRIERS: readonly (readonly [range: Cidr, shift: bigint])[] = (
  [
    ["::ffff:0:0/96", 0n],
    ["::/96", 0n],
    ["64:ff9b::/96", 0n],
    ["64:ff9b:1::/48", 0n],
    ["::ffff:0:0:0/96", 0n],
    ["2002::/16", 80n],
  ] as const
).flatMap(([range, shift]) => {
  const cidr = parseCidr(range);
  return cidr === undefined ? [] : [[cidr, shift] as const];
});

const carried = (ip: Ip): readonly Ip[] =>
  CARRIERS.filter(([range]) => cidrContains(range, ip)).map(([, shift]) => ({ family: 4, value: (ip.value >> shift) & 0xffff_ffffn }));

/** What an operator says about addresses that URLs may lead to. */
export interface AddressRules {
  /** Ranges that may be called although they are this machine's or its link's. */
  readonly allowed: readonly Cidr[];
  /** Further ranges that must not be called. */
  readonly blocked: readonly Cidr[];
}

/** The same question under an operator's rules; what is blocked by name goes before what is allowed. */
export function blockedUnder({ allowed, blocked }: AddressRules): (text: string) => boolean {
  return (text) => {
    const ip = parseIp(text);
    if (ip === undefined) return true;
    const within = (ranges: readonly Cidr[]): boolean =>
      [ip, ...carried(ip)].some((one) => ranges.some((range) => cidrContains(range, one)));
    return within(blocked) || (within(BLOCKED) && !within(allowed));
  };
}

/** Whether an address is not to be called. Text that is no address is blocked: only what was looked up and judged may be called. */
export const isBlockedAddress: (text: string) => boolean = blockedUnder({ allowed: [], blocked: [] });

/** Ranges as settings list them, between commas; the first part that is none is given back as it is. */
export function rangesIn(text: string): readonly Cidr[] | string {
  const ranges: Cidr[] = [];
  for (const part of text.split(",").map((one) => one.trim())) {
    if (part === "") continue;
    const range = parseCidr(part);
    if (range === undefined) return part;
    ranges.push(range);
  }
  return ranges;
}
