import type { CaMaterial } from "./ca-material.ts";

/** News of the CA's certificates and key: a new set that is in force, or why what was found is not. */
export type RootNews = { readonly material: CaMaterial } | { readonly fault: string };

/** Where the CA's certificates and key are kept: files, or a Secret of a cluster. */
export interface RootStore {
  /** For messages. */
  readonly place: string;
  /** A start goes on without it after this long, and goes on waiting; undefined: it waits. */
  readonly patienceMs?: number | undefined;
  /** The set in force; makes one where there is none at all. Throws `EdgeError` where what is there cannot be used: never a new root beside an old one. May be called again after that. */
  load(): Promise<CaMaterial>;
  /** Tells of changes after `load` until the returned function is called. */
  follow(news: (news: RootNews) => void): () => void;
}
