import { CLUSTER_TYPE, ENDPOINT_TYPE, LISTENER_TYPE, ROUTE_TYPE, VIRTUAL_HOST_TYPE } from "../src/wire/type-urls.ts";
import { discoveryRequest, type RequestParts, subscription, versionsHeld } from "./discovery-wire.ts";
import type { SeenResource, SeenResponse } from "./seen-resources.ts";

type Names = ReadonlySet<string>;
const NONE: Names = new Set();

/** What a proxy has asked for and not been sent yet. */
interface Wants {
  readonly asked: ReadonlyMap<string, Names>;
  readonly missing: ReadonlyMap<string, Names>;
  readonly listenersCame: boolean;
}

/** How a proxy came to be where it is. */
interface Step {
  readonly from: Progress;
  readonly response: SeenResponse;
}

/**
 * How far a proxy has come on a delta stream. It asks as Envoy does: all clusters, their assignments, all listeners once the clusters have endpoints, the route
 * tables those name, and all virtual hosts once a table leaves its hosts to discovery.
 *
 * A value: proxies that were sent the same are at the same place, so what follows from a response, and what is then asked for, is worked out and encoded once.
 */
export class Progress {
  /** Requests to be sent on the way here, after the acknowledgement of what led here. */
  readonly requests: readonly Buffer[];
  readonly #wants: Wants;
  readonly #step: Step | undefined;
  readonly #next = new WeakMap<SeenResponse, Progress>();
  #held: ReadonlyMap<string, ReadonlyMap<string, SeenResource>> | undefined;
  #returning: readonly RequestParts[] | undefined;

  private constructor(wants: Wants, requests: readonly Buffer[], step?: Step) {
    this.#wants = wants;
    this.requests = requests;
    this.#step = step;
  }

  /** Where all begin, once they have asked for clusters. */
  static begin(): Progress {
    return new Progress({ asked: new Map([[CLUSTER_TYPE, NONE]]), missing: new Map(), listenersCame: false }, []);
  }

  /** It has all it needs to serve. */
  get ready(): boolean {
    const { missing, listenersCame } = this.#wants;
    return listenersCame && [ROUTE_TYPE, VIRTUAL_HOST_TYPE].every((typeUrl) => (missing.get(typeUrl)?.size ?? 0) === 0);
  }

  /** Names asked for of a type. */
  asked(typeUrl: string): number {
    return this.#wants.asked.get(typeUrl)?.size ?? 0;
  }

  after(response: SeenResponse): Progress {
    const known = this.#next.get(response);
    if (known !== undefined) return known;
    const { wants, requests } = follow(this.#wants, response);
    const next = new Progress(wants, requests, { from: this, response });
    this.#next.set(response, next);
    return next;
  }

  /** What a proxy asks for that has lost its stream here: all types it had asked for, in that order, with all that it holds. */
  get returning(): readonly RequestParts[] {
    this.#returning ??= [...this.#wants.asked].map(([typeUrl, names]) => ({
      typeUrl,
      // Who names nothing asks for all there is; virtual hosts are waited for by their table, but never named.
      ...(names.size > 0 && typeUrl !== VIRTUAL_HOST_TYPE && { subscribe: subscription([...names]) }),
      held: versionsHeld([...(this.held.get(typeUrl)?.values() ?? [])].map(({ name, version }) => [name, version] as const)),
    }));
    return this.#returning;
  }

  /** What a proxy holds here, by type and name. */
  get held(): ReadonlyMap<string, ReadonlyMap<string, SeenResource>> {
    this.#held ??= this.#fold();
    return this.#held;
  }

  #fold(): ReadonlyMap<string, ReadonlyMap<string, SeenResource>> {
    const responses: SeenResponse[] = [];
    let at: Progress = this;
    while (at.#held === undefined && at.#step !== undefined) {
      responses.push(at.#step.response);
      at = at.#step.from;
    }
    const held = new Map([...(at.#held ?? [])].map(([typeUrl, resources]) => [typeUrl, new Map(resources)]));
    for (const { typeUrl, resources, removed } of responses.reverse()) {
      const ofType = held.get(typeUrl) ?? new Map<string, SeenResource>();
      for (const resource of resources) ofType.set(resource.name, resource);
      for (const name of removed) ofType.delete(name);
      held.set(typeUrl, ofType);
    }
    return held;
  }
}

function follow(before: Wants, response: SeenResponse): { readonly wants: Wants; readonly requests: readonly Buffer[] } {
  const { typeUrl, resources } = response;
  const [asked, missing] = [new Map(before.asked), new Map(before.missing)];
  const requests: Buffer[] = [];
  const want = (type: string, names: readonly string[]): readonly string[] => {
    const known = asked.get(type) ?? NONE;
    const fresh = [...new Set(names)].filter((name) => !known.has(name));
    if (fresh.length === 0) return fresh;
    asked.set(type, new Set([...known, ...fresh]));
    missing.set(type, new Set([...(missing.get(type) ?? []), ...fresh]));
    return fresh;
  };
  const ask = (type: string): void => {
    const fresh = want(type, refers());
    if (fresh.length > 0) requests.push(discoveryRequest({ typeUrl: type, subscribe: subscription(fresh) }));
  };
  const refers = (): readonly string[] => resources.flatMap((resource) => resource.refers);
  const has = (type: string): boolean => (missing.get(type)?.size ?? 0) === 0;

  const waited = missing.get(typeUrl);
  if (waited !== undefined && waited.size > 0) {
    const came = new Set(resources.map(({ name }) => wantedName(typeUrl, name)));
    missing.set(typeUrl, new Set([...waited].filter((name) => !came.has(name))));
  }
  if (typeUrl === CLUSTER_TYPE) ask(ENDPOINT_TYPE);
  if (typeUrl === LISTENER_TYPE) ask(ROUTE_TYPE);
  if (typeUrl === ROUTE_TYPE) {
    // Hosts are asked for once, without names; those of each of these tables must come.
    const first = !asked.has(VIRTUAL_HOST_TYPE);
    if (want(VIRTUAL_HOST_TYPE, refers()).length > 0 && first) requests.push(discoveryRequest({ typeUrl: VIRTUAL_HOST_TYPE }));
  }
  if ((typeUrl === CLUSTER_TYPE || typeUrl === ENDPOINT_TYPE) && has(ENDPOINT_TYPE) && !asked.has(LISTENER_TYPE)) {
    asked.set(LISTENER_TYPE, NONE);
    requests.push(discoveryRequest({ typeUrl: LISTENER_TYPE }));
  }
  return { wants: { asked, missing, listenersCame: before.listenersCame || typeUrl === LISTENER_TYPE }, requests };
}

/** What a resource is waited for as: a virtual host stands for its table. */
const wantedName = (typeUrl: string, name: string): string =>
  typeUrl === VIRTUAL_HOST_TYPE ? name.slice(0, Math.max(0, name.lastIndexOf("/"))) : name;
