import { type Mark, MarkSum, markOf, sumOf } from "../base/mark-sum.ts";
import type { Encoded, ResourceSet } from "../wire/encoded.ts";
import { partsOf } from "../wire/stacked-resources.ts";

const setVersions = new WeakMap<ResourceSet, string>();
const partMarks = new WeakMap<ResourceSet["resources"], Mark>();
const resourceMarks = new WeakMap<Encoded, Mark>();

/** One version for a whole set, from its members, in whatever order they stand: equal sets agree on it everywhere. */
export function setVersion(set: ResourceSet): string {
  const known = setVersions.get(set);
  if (known !== undefined) return known;
  const version = sumOf(partsOf(set.resources).map(markOfPart)).text;
  setVersions.set(set, version);
  return version;
}

function markOfPart(part: ResourceSet["resources"]): Mark {
  const known = partMarks.get(part);
  if (known !== undefined) return known;
  const { mark } = sumOf(part.values().map(markOfResource));
  partMarks.set(part, mark);
  return mark;
}

function markOfResource(resource: Encoded): Mark {
  const known = resourceMarks.get(resource);
  if (known !== undefined) return known;
  const mark = markOf(pairOf(resource.name, resource.version));
  resourceMarks.set(resource, mark);
  return mark;
}

const pairOf = (name: string, version: string): string => `${name}\t${version}`;

/** Of so many names is remembered what was worked out for them; clients say which there are. */
const MOST_MARKS = 100_000;

/** Versions of sets of which only names and versions are known: what `setVersion` would say of the set. What sets share is worked out once. */
export function listedVersions(): (versions: ReadonlyMap<string, string>) => string {
  const marks = new Map<string, { readonly version: string; readonly mark: Mark }>();
  const known = new WeakMap<ReadonlyMap<string, string>, string>();
  const markOfPair = (name: string, version: string): Mark => {
    const last = marks.get(name);
    if (last?.version === version) return last.mark;
    const mark = markOf(pairOf(name, version));
    if (marks.size >= MOST_MARKS) marks.clear();
    marks.set(name, { version, mark });
    return mark;
  };
  return (versions) => {
    const before = known.get(versions);
    if (before !== undefined) return before;
    const sum = new MarkSum();
    versions.forEach((version, name) => void sum.add(markOfPair(name, version))); // An iterator would leave two objects behind for each.
    known.set(versions, sum.text);
    return sum.text;
  };
}
