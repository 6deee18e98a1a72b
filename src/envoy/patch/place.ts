import type { Operation } from "./patch.ts";

/** A list of named things and how a patch sees it. */
export interface Placing<T> {
  readonly list: T[];
  /** Makes what is to be put in. */
  readonly value: () => T;
  readonly matches: (item: T) => boolean;
  /** Whether the patch names a member; without one, "before" means first and "after" means last. */
  readonly specific: boolean;
  /** Where "last" is: before a member that must stay the last. Default: the end. */
  readonly end?: number;
}

/**
 * Adds to, replaces in or removes from a list as EnvoyFilter's operations say. Tells whether the list changed: a patch that names a member
 * which is not there does nothing, and so does one that would remove or replace without naming what.
 */
export function place<T>(operation: Operation, { list, value, matches, specific, end = list.length }: Placing<T>): boolean {
  const index = specific ? list.findIndex(matches) : -1;
  switch (operation) {
    case "ADD":
      return insert(list, end, value());
    case "INSERT_FIRST":
      return insert(list, 0, value());
    case "INSERT_BEFORE":
      if (!specific) return insert(list, 0, value());
      return index >= 0 && insert(list, index, value());
    case "INSERT_AFTER":
      if (!specific) return insert(list, end, value());
      return index >= 0 && insert(list, Math.min(index + 1, end), value());
    case "REPLACE":
      if (index >= 0) list[index] = value();
      return index >= 0;
    case "REMOVE":
      return index >= 0 && removeAll(list, matches);
    case "MERGE":
    case "MERGE_AND_REPLACE_LIST":
      return false;
  }
}

function insert<T>(list: T[], at: number, item: T): boolean {
  list.splice(at, 0, item);
  return true;
}

function removeAll<T>(list: T[], matches: (item: T) => boolean): boolean {
  const kept = list.filter((item) => !matches(item));
  list.splice(0, list.length, ...kept);
  return true;
}
