import type { KeptReadings } from "../config/documents/kept-readings.ts";
import type { RawObject } from "../config/object.ts";
import { readObject } from "../config/read-object.ts";
import type { Patches } from "../generate/patches/patches.ts";
import { messageRegistry } from "../wire/json.ts";

/** Descriptors of Envoy's extensions, of which only EnvoyFilters have need. */
export interface Descriptors {
  /** Reads an object as the store does; the first EnvoyFilter starts the loading. */
  readonly readObject: typeof readObject;
  /** Resolves when descriptors that are being loaded are there; undefined when there is nothing to wait for. */
  waiting(): Promise<void> | undefined;
}

/**
 * Loads descriptors when the first EnvoyFilter is read, so that they are there before it is in force. Most meshes have none, and are spared
 * the time and the memory (docs/envoy-filter.md has the figures).
 */
export function createDescriptors(patches: Pick<Patches, "use">, known: Pick<KeptReadings, "reader">): Descriptors {
  const read = known.reader(readObject);
  let loading: Promise<void> | undefined;
  let loaded = false;
  const load = async (): Promise<void> => {
    patches.use(await messageRegistry());
    loaded = true;
  };
  return {
    readObject: (raw: RawObject) => {
      const result = read(raw);
      if (result.object?.kind === "EnvoyFilter") loading ??= load();
      return result;
    },
    waiting: () => (loaded ? undefined : loading),
  };
}
