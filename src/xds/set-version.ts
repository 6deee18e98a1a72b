import { contentHash } from "../base/hash.ts";
import type { Encoded, ResourceSet } from "../wire/encoded.ts";

/** Two numbers of 48 bits that stand for a name, or a name and a version, in sums: a set of a thousand costs a thousand additions, not sorting. */
interface Mark {
  readonly high: number;
  readonly low: number;
}

const MARK_BYTES = 6;
const MARK_LIMIT = 2 ** (8 * MARK_BYTES);

function markOf(text: string): Mark {
  const hash = Buffer.from(contentHash(text), "base64url");
  return { high: hash.readUIntBE(0, MARK_BYTES), low: hash.readUIntBE(MARK_BYTES, MARK_BYTES) };
}

function sumOf(marks: Iterable<Mark>): string {
  let [high, low] = [0, 0];
  for (const mark of marks) {
    high = (high + mark.high) % MARK_LIMIT;
    low = (low + mark.low) % MARK_LIMIT;
  }
  return `${high.toString(36)}${low.toString(36).padStart(10, "0")}`;
}

const setVersions = new WeakMap<ResourceSet, string>();
const resourceMarks = new WeakMap<Encoded, Mark>();

/** One version for a whole set, from its members, in whatever order they stand: equal sets agree on it everywhere. */
export function setVersion(set: ResourceSet): string {
  const known = setVersions.get(set);
  if (known !== undefined) return known;
  const version = sumOf(set.resources.values().map(markOfResource));
  setVersions.set(set, version);
  return version;
}

function markOfResource(resource: Encoded): Mark {
  const known = resourceMarks.get(resource);
  if (known !== undefined) return known;
  const mark = markOf(pairOf(resource.name, resource.version));
  resourceMarks.set(resource, mark);
  return mark;
}

const pairOf = (name: string, version: string): string => `${name}\t${version}`;

/** Versions of sets of which only names and versions are known: what `setVersion` would say of the set. Pairs that sets share are worked out once. */
export function listedVersions(): (versions: ReadonlyMap<string, string>) => string {
  const marks = new Map<string, Mark>();
  const known = new WeakMap<ReadonlyMap<string, string>, string>();
  const markOfPair = (pair: string): Mark => {
    const mark = marks.get(pair) ?? markOf(pair);
    marks.set(pair, mark);
    return mark;
  };
  return (versions) => {
    const version = known.get(versions) ?? sumOf(versions.entries().map(([name, one]) => markOfPair(pairOf(name, one))));
    known.set(versions, version);
    return version;
  };
}
