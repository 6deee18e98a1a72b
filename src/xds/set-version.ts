import { type Mark, markOf, sumOf } from "../base/mark-sum.ts";
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
    const version = known.get(versions) ?? sumOf(versions.entries().map(([name, one]) => markOfPair(pairOf(name, one)))).text;
    known.set(versions, version);
    return version;
  };
}
