import type { DeltaRequestParts, DeltaResource, DeltaResponse } from "../../wire/delta-frames.ts";
import type { DiscoveryRequest } from "../../wire/discovery-request.ts";

/** A response that Envoy has not answered. */
export interface Unanswered {
  readonly nonce: string;
  /** The upstream stream it came from; 0 for what was served from disk. */
  readonly stream: number;
  readonly changed: readonly DeltaResource[];
  readonly removed: readonly string[];
}

const WILDCARD = "*";

/** What Envoy wants and holds of one type: enough to ask for the same on another stream, and to be sent only what differs. */
export class TypeState {
  readonly typeUrl: string;
  readonly #names = new Set<string>();
  readonly #held = new Map<string, string>();
  readonly #unanswered: Unanswered[] = [];
  #wildcard = false;
  #begun = false;
  #told = false;

  constructor(typeUrl: string) {
    this.typeUrl = typeUrl;
  }

  get held(): ReadonlyMap<string, string> {
    return this.#held;
  }

  /** It wants everything there is, has nothing, and was sent nothing: it waits for an answer, even one that brings nothing. */
  get waits(): boolean {
    return this.#wildcard && this.#held.size === 0 && !this.#told;
  }

  /** Takes the subscription of a request in. A first request without names wants everything (xDS protocol, "wildcard"). */
  subscribe(request: DiscoveryRequest): void {
    if (!this.#begun) {
      this.#begun = true;
      this.#wildcard = request.names.length === 0;
      for (const [name, version] of request.initialVersions) this.#held.set(name, version);
    }
    for (const name of request.names) {
      if (name === WILDCARD) this.#wildcard = true;
      else this.#names.add(name);
    }
    for (const name of request.unsubscribe) {
      if (name === WILDCARD) this.#wildcard = false;
      else {
        this.#names.delete(name);
        this.#held.delete(name);
      }
    }
  }

  sent(response: Pick<DeltaResponse, "nonce" | "resources" | "removed">, stream: number): void {
    this.#told = true;
    this.#unanswered.push({ nonce: response.nonce, stream, changed: response.resources, removed: response.removed });
  }

  /** Finds what a request answers; Envoy answers in order. What it accepted counts as held. */
  answered({ nonce, error }: DiscoveryRequest): Unanswered | undefined {
    const [first] = this.#unanswered;
    if (nonce === "" || first?.nonce !== nonce) return undefined;
    this.#unanswered.shift();
    if (error !== undefined) return first;
    for (const { name, version } of first.changed) this.#held.set(name, version);
    for (const name of first.removed) this.#held.delete(name);
    return first;
  }

  /** The first request of this type on a new stream; undefined where nothing is wanted, since asking for nothing would mean everything. */
  opening(): DeltaRequestParts | undefined {
    if (!this.#wildcard && this.#names.size === 0) return undefined;
    const subscribe = this.#names.size === 0 ? [] : [...(this.#wildcard ? [WILDCARD] : []), ...this.#names];
    return { typeUrl: this.typeUrl, subscribe, initialVersions: this.#held };
  }

  /** Which of the resources at hand Envoy wants and neither holds in that version nor is about to. */
  wanted(resources: ReadonlyMap<string, DeltaResource>): readonly DeltaResource[] {
    const chosen = this.#wildcard ? [...resources.values()] : [...this.#names].flatMap((name) => resources.get(name) ?? []);
    const coming = new Map(this.#unanswered.flatMap(({ changed }) => changed.map(({ name, version }) => [name, version])));
    return chosen.filter(({ name, version }) => (coming.get(name) ?? this.#held.get(name)) !== version);
  }
}
