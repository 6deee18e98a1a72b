import { createKeySets, type KeySetsOptions } from "./key-sets.ts";
import { createNetworkNames, type NetworkNamesOptions } from "./network-names.ts";

/** What configuration names outside the mesh and the control plane finds out itself: addresses of gateways, keys of token issuers. */
export interface Outside {
  /** Configuration changed: something else may be wanted. */
  follow(): void;
  /** Resolves when everything that is wanted was asked for once. */
  asked(): Promise<void>;
  stop(): void;
}

/** Asks for nothing before `follow`. */
export function createOutside(options: NetworkNamesOptions & Omit<KeySetsOptions, "settings">): Outside {
  const followed = [createNetworkNames(options), createKeySets({ ...options, settings: options.mesh.current.settings })];
  return {
    follow() {
      for (const one of followed) one.follow();
    },
    async asked() {
      await Promise.all(followed.map((one) => one.asked()));
    },
    stop() {
      for (const one of followed) one.stop();
    },
  };
}
