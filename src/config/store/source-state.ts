import type { ConfigObject, ObjectRef, Origin } from "../object.ts";
import type { Judged } from "./judge.ts";

/** A version of an object that may be in force. */
export interface GoodVersion {
  readonly object: ConfigObject;
  readonly ref: ObjectRef;
  readonly scope: string;
  readonly slot: string;
  readonly origin: Origin;
  readonly namespace: string | undefined;
  /** The content as text. */
  readonly written: string | undefined;
}

/** What a source wants in force for one key. */
export interface Standing {
  readonly version: GoodVersion;
  /** The document that said so is broken, or lost among broken ones: this is the last good version. */
  readonly stale: boolean;
}

/**
 * What one source has said, after judging, and the last good version of every object in it.
 *
 * The first document of a key, by scope and then by place in it, owns the key. While the owner is good it is in force; while it is
 * broken its last good version is. A document whose name cannot be read might be any of those its scope held before: as long as there
 * is one, none of them is taken for deleted.
 */
export class SourceState {
  readonly name: string;
  readonly #scopes = new Map<string, readonly Judged[]>();
  readonly #documents = new Map<string, Judged[]>();
  readonly #keyless = new Set<Judged>();
  /** Scopes with broken documents whose name cannot be read, and the digests of those. */
  readonly #nameless = new Map<string, Set<string>>();
  readonly #good = new Map<string, GoodVersion>();
  readonly #standing = new Map<string, Standing>();

  constructor(name: string) {
    this.name = name;
  }

  scope(scope: string): readonly Judged[] {
    return this.#scopes.get(scope) ?? [];
  }

  scopes(): Iterable<readonly Judged[]> {
    return this.#scopes.values();
  }

  /** Documents that do not say which object they are. */
  keyless(): Iterable<Judged> {
    return this.#keyless;
  }

  scopeNames(): Iterable<string> {
    return this.#scopes.keys();
  }

  /** The documents of a key, the owner first. */
  documents(key: string): readonly Judged[] {
    return this.#documents.get(key) ?? [];
  }

  /** Of each key the document that owns it. */
  *owners(): Iterable<Judged> {
    for (const [owner] of this.#documents.values()) if (owner !== undefined) yield owner;
  }

  standing(key: string): Standing | undefined {
    return this.#standing.get(key);
  }

  /** A version that was in force before a restart; it matters only if its document turns out to be broken. */
  remember(key: string, version: GoodVersion): void {
    this.#good.set(key, version);
  }

  /** Puts `documents` in the place of what the scope said; returns the keys that must be settled again. */
  replace(scope: string, documents: readonly Judged[]): ReadonlySet<string> {
    // What a scope without nameless documents held is known by name: only then need all of it be settled again.
    const touched = new Set(this.#nameless.has(scope) ? this.#goodOf(scope) : undefined);
    if (documents.length === 0) this.#handOver(scope);
    const before = this.scope(scope);
    const after = before.length === 0 ? NONE : new Set(documents);
    const stay = before.length === 0 ? NONE : new Set(before.filter((document) => after.has(document)));
    for (const document of before) {
      if (stay.has(document)) continue;
      this.#keyless.delete(document);
      this.#unlist(document, touched);
    }
    this.#scopes.delete(scope);
    if (documents.length > 0) this.#scopes.set(scope, documents);
    this.#nameless.delete(scope);
    for (const document of documents) {
      if (document.key === undefined) {
        this.#keyless.add(document);
        this.#noteNameless(scope, document);
      } else if (!stay.has(document)) this.#list(document.key, document, touched);
    }
    return touched;
  }

  /** Keys of versions remembered from before a restart, in case their scope never speaks. */
  rememberedKeys(): Iterable<string> {
    return this.#good.keys();
  }

  /** Decides what is in force for `key`, and forgets a good version that nothing speaks for any more. */
  settle(key: string): Standing | undefined {
    const standing = this.#decide(key);
    if (standing === undefined) {
      this.#good.delete(key);
      this.#standing.delete(key);
    } else {
      this.#good.set(key, standing.version);
      this.#standing.set(key, standing);
    }
    return standing;
  }

  #decide(key: string): Standing | undefined {
    const documents = this.documents(key);
    const [owner] = documents;
    const last = this.#good.get(key);
    const own = owner === undefined ? undefined : versionOf(owner);
    if (own !== undefined) return { version: own, stale: false };
    if (owner === undefined) return last !== undefined && this.#nameless.has(last.scope) ? { version: last, stale: true } : undefined;
    const next = documents.map(versionOf).find((version) => version !== undefined);
    if (last !== undefined) return { version: last, stale: next?.object.hash !== last.object.hash };
    return next === undefined ? undefined : { version: next, stale: false };
  }

  /** A broken file that is renamed takes along what it stands for: the scope that now holds the same unreadable text gets it. */
  #handOver(scope: string): void {
    const lost = this.#nameless.get(scope);
    if (lost === undefined) return;
    for (const [heir, digests] of this.#nameless) {
      if (heir === scope || ![...lost].some((digest) => digests.has(digest))) continue;
      for (const key of this.#goodOf(scope)) {
        const version = this.#good.get(key);
        if (version !== undefined) this.#good.set(key, { ...version, scope: heir });
      }
      return;
    }
  }

  #noteNameless(scope: string, document: Judged): void {
    if (!document.broken) return;
    const digests = this.#nameless.get(scope) ?? new Set();
    this.#nameless.set(scope, digests.add(document.digest ?? document.slot));
  }

  #list(key: string, document: Judged, touched: Set<string>): void {
    touched.add(key);
    const documents = this.#documents.get(key);
    if (documents === undefined) this.#documents.set(key, [document]);
    else {
      documents.push(document);
      documents.sort(inOrder);
    }
  }

  #unlist(document: Judged, touched: Set<string>): void {
    if (document.key === undefined) return;
    touched.add(document.key);
    const rest = this.documents(document.key).filter((one) => one !== document);
    if (rest.length === 0) this.#documents.delete(document.key);
    else this.#documents.set(document.key, rest);
  }

  /** Keys of the last good versions that a scope gave. Few are ever asked for, so no list of them is kept for each scope. */
  #goodOf(scope: string): readonly string[] {
    return [...this.#good].flatMap(([key, version]) => (version.scope === scope ? [key] : []));
  }
}

const NONE: ReadonlySet<Judged> = new Set();

const inOrder = (a: Judged, b: Judged): number => (a.scope === b.scope ? a.index - b.index : a.scope < b.scope ? -1 : 1);

/** A document without a fault is the version it brings. */
const versionOf = (document: Judged): GoodVersion | undefined => (isGood(document) ? document : undefined);

const isGood = (document: Judged): document is Judged & GoodVersion => document.object !== undefined && document.ref !== undefined;
