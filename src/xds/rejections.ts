import type { Encoded, ResourceSet } from "../wire/encoded.ts";
import type { Diff } from "./diff.ts";
import { type Holding, heldResource } from "./holding.ts";

/** A resource a client refused. It is not sent again until its content changes. */
export interface Rejection {
  readonly version: string;
  /** What is served instead: what the client had accepted before, else what the resource was before users changed it. */
  readonly fallback: Encoded | undefined;
  /** Whether the client accepted that before: then it is not at fault when a response is refused. */
  readonly proven: boolean;
  readonly error: string;
}

/** After this many probes for an offender that a client does not name, all that is still suspect counts as rejected. */
const MAX_PROBES = 64;

/**
 * What one client refused of one type. A rejected response says nothing certain about any of its resources, so all are sent again without the
 * offender. Where the client does not name it, the response is halved until the offender stands alone.
 */
export class Rejections {
  readonly #rejected = new Map<string, Rejection>();
  #suspects: readonly (readonly string[])[] = [];
  /** What the client held of each suspect when the search began. */
  #fallbacks = new Map<string, Encoded | undefined>();
  #probes = 0;
  readonly #plain: (resource: Encoded) => Encoded | undefined;

  /** `plain` gives what a resource was before users changed it, where they did. */
  constructor(plain: (resource: Encoded) => Encoded | undefined = () => undefined) {
    this.#plain = plain;
  }

  get rejected(): ReadonlyMap<string, Rejection> {
    return this.#rejected;
  }

  /** Nothing is rejected or suspect. */
  get none(): boolean {
    return this.#rejected.size === 0 && this.#suspects.length === 0;
  }

  get probing(): boolean {
    return this.#suspects.length > 0;
  }

  /** Takes note of a refusal; gives the names that are now held to be at fault (none while it is still being looked for). */
  refuse(sent: Diff, holding: Holding, error: string): readonly string[] {
    const candidates = this.#candidates(sent.changed);
    const names = candidates.map((resource) => resource.name);
    const named = names.length === 1 ? names : offendersIn(error, names);
    this.#probes += 1;
    const guilty = named.length > 0 ? named : this.#probes > MAX_PROBES ? names : [];
    if (guilty.length > 0) {
      for (const resource of candidates) if (guilty.includes(resource.name)) this.#reject(resource, holding, error);
      this.#suspects = named.length > 0 ? this.#suspects.slice(1) : [];
      this.#calm();
      return guilty;
    }
    for (const name of names) if (!this.#fallbacks.has(name)) this.#fallbacks.set(name, heldResource(holding, name));
    const middle = Math.ceil(names.length / 2);
    this.#suspects = [names.slice(0, middle), names.slice(middle), ...this.#suspects.slice(1)];
    return [];
  }

  /** Takes note of an acknowledgement: the group that was being tried is innocent. Tells whether another one waits. */
  accept(): boolean {
    if (this.#suspects.length === 0) return false;
    this.#suspects = this.#suspects.slice(1);
    this.#calm();
    return true;
  }

  /** What to serve in place of rejected and suspect resources; forgets rejections of content that is no longer offered. */
  replacements(offered: ResourceSet): ReadonlyMap<string, Encoded | undefined> {
    const result = new Map<string, Encoded | undefined>();
    for (const [name, rejection] of this.#rejected) {
      if (offered.resources.get(name)?.version === rejection.version) result.set(name, rejection.fallback);
      else this.#rejected.delete(name);
    }
    for (const group of this.#suspects.slice(1)) {
      for (const name of group) if (offered.resources.has(name)) result.set(name, this.#fallbacks.get(name));
    }
    return result;
  }

  /** What was accepted before and now stands in for something else is innocent, unless there is nobody else. */
  #candidates(changed: readonly Encoded[]): readonly Encoded[] {
    const accepted = (name: string): Encoded | undefined => {
      const rejection = this.#rejected.get(name);
      return (rejection?.proven === true ? rejection.fallback : undefined) ?? this.#fallbacks.get(name);
    };
    const fresh = changed.filter(({ name, version }) => version !== accepted(name)?.version);
    return fresh.length > 0 ? fresh : changed;
  }

  #reject(resource: Encoded, holding: Holding, error: string): void {
    const { name, version } = resource;
    const earlier = this.#rejected.get(name);
    if (earlier !== undefined && !earlier.proven && earlier.fallback?.version === version) {
      this.#rejected.set(name, { ...earlier, fallback: undefined, error });
      return;
    }
    const held = this.#fallbacks.get(name) ?? heldResource(holding, name);
    const accepted = held?.version === version ? undefined : held;
    const fallback = this.#instead(resource, accepted);
    this.#rejected.set(name, { version, fallback, proven: fallback !== undefined && fallback.version === accepted?.version, error });
  }

  /** What the client accepted before, unless that was without the users' change: then the present one without it is as good, and newer. */
  #instead(resource: Encoded, accepted: Encoded | undefined): Encoded | undefined {
    const plain = this.#plain(resource);
    const keep = accepted !== undefined && (plain === undefined || this.#plain(accepted) !== undefined);
    return keep ? accepted : plain;
  }

  /** The search is over when nobody is suspect any more. */
  #calm(): void {
    if (this.#suspects.length > 0) return;
    this.#fallbacks = new Map();
    this.#probes = 0;
  }
}

/** Envoy's words where several clusters or listeners are judged one by one: `Error adding/updating cluster(s) a: reason, b: reason`. */
const LISTED = /^Error adding\/updating (?:cluster|listener)\(s\) /;

/** Shorter names (a port, say) stand in texts for other reasons. */
const MIN_TELLING_NAME = 6;

/**
 * Names that an error text blames. Careful rather than clever: a name counts only as a whole word, in Envoy's lists only where a reason
 * follows, elsewhere only if it is long enough not to be there by chance.
 */
export function offendersIn(text: string, names: readonly string[]): readonly string[] {
  if (LISTED.test(text)) {
    const listed = names.filter((name) => text.includes(`) ${name}: `) || text.includes(`, ${name}: `) || text.includes(`\n${name}: `));
    if (listed.length > 0) return listed;
  }
  return names.filter((name) => name.length >= MIN_TELLING_NAME && !/^[\d.:]+$/.test(name) && standsAlone(text, name));
}

const PART_OF_NAME = /[\w.|~/:*-]/;

function standsAlone(text: string, name: string): boolean {
  for (let at = text.indexOf(name); at >= 0; at = text.indexOf(name, at + 1)) {
    const before = text[at - 1] ?? " ";
    const after = text[at + name.length] ?? " ";
    const next = text[at + name.length + 1] ?? " ";
    if (!PART_OF_NAME.test(before) && (!PART_OF_NAME.test(after) || (/[.:]/.test(after) && /\s/.test(next)))) return true;
  }
  return false;
}
