import { type Cidr, formatIp } from "../base/address.ts";

/** A host that gets an address from us. */
export interface Applicant {
  /** `namespace/host`. */
  readonly key: string;
  readonly createdAt: number;
}

/** Numbers that end in .0 or .255 are left out: some systems take them for network and broadcast addresses. */
const PER_BLOCK = 254;
const SLOTS = 256 * PER_BLOCK;

/**
 * Gives each applicant a slot of its own. A slot is the hash of the key, or the next free one when an earlier applicant has it; older
 * applicants choose first. So slots follow from content alone (all replicas agree, restarts change nothing), and a new host moves another
 * one only where both hash to the same place. Applicants beyond the range get none.
 */
export function allocateSlots(applicants: readonly Applicant[]): ReadonlyMap<string, number> {
  const order = applicants.toSorted((a, b) => a.createdAt - b.createdAt || (a.key < b.key ? -1 : 1));
  const taken = new Set<number>();
  const slots = new Map<string, number>();
  for (const { key } of order) {
    if (slots.size === SLOTS) break;
    let slot = hash(key) % SLOTS;
    while (taken.has(slot)) slot = (slot + 1) % SLOTS;
    taken.add(slot);
    slots.set(key, slot);
  }
  return slots;
}

const BUCKETS = 64;

/** Which part of the allocation a key is kept in. */
export const bucketOf = (key: string): number => hash(key) % BUCKETS;

/** The allocation in parts, so that who reads one slot need not be asked again when another is given out. */
export function inBuckets(slots: ReadonlyMap<string, number>): readonly ReadonlyMap<string, number>[] {
  const buckets = Array.from({ length: BUCKETS }, () => new Map<string, number>());
  for (const [key, slot] of slots) buckets[bucketOf(key)]?.set(key, slot);
  return buckets;
}

/** The address of a slot in a range: 0 is `240.240.0.1`, 254 is `240.240.1.1`. */
export function slotAddress(range: Cidr, slot: number): string {
  const offset = Math.floor(slot / PER_BLOCK) * 256 + (slot % PER_BLOCK) + 1;
  return formatIp({ family: range.family, value: range.base + BigInt(offset) });
}

/** FNV-1a, 32 bits: quick, and spreads short names well. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193);
  return value >>> 0;
}
