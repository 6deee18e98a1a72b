import { lookup } from "node:dns";
import type { LookupFunction } from "node:net";

/**
 * A look-up for connections that finds only addresses that may be called. The connection uses what was judged here, so a name cannot stand for
 * another address a moment later.
 */
export function guardedLookup(isBlocked: (address: string) => boolean): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, found) => {
      if (error !== null) {
        callback(error, []);
        return;
      }
      const allowed = found.filter(({ address }) => !isBlocked(address));
      const [first] = allowed;
      if (first === undefined) callback(blockedPlace(hostname), []);
      else if (options.all === true) callback(null, allowed);
      else callback(null, first.address, first.family);
    });
  };
}

/** What is said of a place that is not called. */
export const blockedPlace = (place: string): Error =>
  new Error(`${place} leads to an address of this machine, of its link or of a metadata service, which is not called`);
