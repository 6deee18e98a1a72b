import type { Clock } from "../../base/clock.ts";
import { createSlice } from "../../base/slice.ts";
import { formatOrigin, type RawObject, type SourceEvent } from "../object.ts";
import { type JudgeDeps, type Judged, judge, moved } from "./judge.ts";
import type { StageSummary } from "./store-types.ts";

/** One event, judged. */
export interface JudgedEvent extends StageSummary {
  readonly reset: boolean;
  /** The scopes it replaces. */
  readonly scopes: ReadonlyMap<string, readonly Judged[]>;
  /** Documents that were found broken now: the key, or the place of one that has no readable name. */
  readonly broken: readonly string[];
}

export interface EventDeps extends JudgeDeps {
  readonly clock: Clock;
  /** The last verdicts on each scope: a document that says the same as then is not judged again. */
  readonly latest: ReadonlyMap<string, readonly Judged[]>;
}

/**
 * Judges what a source says, in slices, each document as it is told: of one that the source reads only then, nothing but the verdict is left when the
 * next is asked for. The first event of a source may be all there is.
 */
export async function judgeEvent(event: SourceEvent, deps: EventDeps): Promise<JudgedEvent> {
  const verdicts = new Verdicts(deps);
  const slice = createSlice(deps.clock);
  if (event.type === "reset") {
    for await (const raw of event.objects) {
      verdicts.add(raw.scope ?? raw.slot, raw);
      const rest = slice();
      if (rest !== undefined) await rest;
    }
  } else {
    for (const { scope, objects } of event.scopes) {
      verdicts.open(scope);
      for (const raw of objects) {
        verdicts.add(scope, raw);
        const rest = slice();
        if (rest !== undefined) await rest;
      }
    }
  }
  const { scopes, broken, documents, reused } = verdicts;
  return { reset: event.type === "reset", scopes, broken, documents, reused };
}

class Verdicts {
  readonly scopes = new Map<string, Judged[]>();
  readonly broken: string[] = [];
  documents = 0;
  reused = 0;
  readonly #deps: EventDeps;
  /** What is known of one scope: sources tell of one after the other. */
  #known: { readonly scope: string | undefined; readonly byDigest: ReadonlyMap<string, Judged> } = {
    scope: undefined,
    byDigest: NONE_JUDGED,
  };

  constructor(deps: EventDeps) {
    this.#deps = deps;
  }

  /** The verdicts on a scope so far. */
  open(scope: string): Judged[] {
    const judged = this.scopes.get(scope) ?? [];
    if (judged.length === 0) this.scopes.set(scope, judged);
    return judged;
  }

  add(scope: string, raw: RawObject): void {
    const judged = this.open(scope);
    const index = judged.length;
    const before = raw.digest === undefined ? undefined : this.#knownIn(scope).get(raw.digest);
    const same = before !== undefined && before.namespace === raw.defaultNamespace && before.origin.file === raw.origin.file;
    const document = same ? moved(before, raw, index) : judge(raw, { scope, index }, this.#deps);
    if (same) this.reused += 1;
    else if (document.broken) this.broken.push(document.key ?? formatOrigin(document.origin));
    judged.push(document);
    this.documents += 1;
  }

  #knownIn(scope: string): ReadonlyMap<string, Judged> {
    if (this.#known.scope !== scope) {
      const latest = this.#deps.latest.get(scope);
      this.#known = { scope, byDigest: latest === undefined ? NONE_JUDGED : byDigest(latest) };
    }
    return this.#known.byDigest;
  }
}

const NONE_JUDGED: ReadonlyMap<string, Judged> = new Map();

function byDigest(documents: readonly Judged[]): Map<string, Judged> {
  const known = new Map<string, Judged>();
  for (const document of documents) if (document.digest !== undefined) known.set(document.digest, document);
  return known;
}
