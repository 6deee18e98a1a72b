import { type Cidr, cidrContains, type Ip, parseCidr, parseIp } from "../base/address.ts";

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
  "fd00:ec2::254/128", // metadata, AWS
  "fd20:ce::254/128", // metadata, Google Cloud
].flatMap((range) => parseCidr(range) ?? []);

/** IPv6 ranges that carry an IPv4 address: how many bits stand after it. */
const CARRIERS: readonly (readonly [range: Cidr, shift: bigint])[] = (
  [
    ["::ffff:0:0/96", 0n],
    ["::/96", 0n],
    ["64:ff9b::/96", 0n],
    ["2002::/16", 80n],
  ] as const
).flatMap(([range, shift]) => {
  const cidr = parseCidr(range);
  return cidr === undefined ? [] : [[cidr, shift] as const];
});

/** Whether an address is not to be called. Text that is no address is blocked: only what was looked up and judged may be called. */
export function isBlockedAddress(text: string): boolean {
  const ip = parseIp(text);
  return ip === undefined || [ip, ...carried(ip)].some((one) => BLOCKED.some((range) => cidrContains(range, one)));
}

const carried = (ip: Ip): readonly Ip[] =>
  CARRIERS.filter(([range]) => cidrContains(range, ip)).map(([, shift]) => ({ family: 4, value: (ip.value >> shift) & 0xffff_ffffn }));
