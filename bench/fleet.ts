import { systemClock } from "../src/base/clock.ts";
import { Client, type ClientDeps } from "./client.ts";
import { Progress } from "./progress.ts";
import type { SceneProxy } from "./scene.ts";
import { type Marker, SeenResources, type SeenResponse } from "./seen-resources.ts";

/** What is awaited of a change. A client is done when `reached` says so of a response it got. */
export interface Expectation {
  /** Clients that must be reached; all others may be. */
  readonly clients: (client: Client) => boolean;
  readonly reached: (client: Client, response: SeenResponse) => boolean;
  readonly marker?: string;
}

/** A change that every client must see, by its marker. */
export const reachesAll = ({ marker }: { readonly marker: string }): Expectation => ({
  marker,
  clients: () => true,
  reached: (_, response) => response.markers.has(marker),
});

/** How a change came to the clients. Times are ms since it was made. */
export interface Propagation {
  /** When each awaited client was reached, in order. */
  readonly times: readonly number[];
  /** Clients that got anything. */
  readonly touched: number;
  readonly messages: number;
  readonly bytes: number;
}

/** How proxies came back to a server. */
export interface Comeback {
  /** When each was served, in order; ms since what cost it its stream. */
  readonly times: readonly number[];
  /** Those to which the server said something. */
  readonly answered: number;
  /** What it said to all of them. */
  readonly bytes: number;
}

/** After the last awaited response this long nothing may come for a change to be over. */
const QUIET_MS = 300;
const TIMEOUT_MS = 240_000;
/** The middle of what Envoy waits before it tries again the first time. */
const AGAIN_MS = 250;
/** How long Envoy waits at most before it tries again for the first time; twice as long each time after that. */
const FIRST_BACKOFF_MS = 500;
const LONGEST_BACKOFF_MS = 30_000;
/** Different for each of many, and the same in every run. */
const GOLDEN = 0.618_034;
/** One to whom nothing is said for so long on an open stream has what it needs. */
const SERVED_MS = 1_000;

export interface FleetOptions {
  /** Bytes that may be on their way to a client unread; Envoy's unless said otherwise. */
  readonly window?: number;
  /** How each proxy connects over TLS; in plaintext where left out. */
  readonly secure?: ClientDeps["secure"];
  /** A proxy that is turned away before it has all it needs comes again, as Envoy does; otherwise that is a failure of the measurement. */
  readonly comesAgain?: boolean;
  /** How long anything is waited for. */
  readonly patienceMs?: number;
  /** Told of each response to each client. */
  readonly received?: (client: Client, response: SeenResponse) => void;
}

/** Many clients, watched together. */
export class Fleet {
  readonly #port: number;
  readonly #options: FleetOptions;
  readonly #seen = new SeenResources();
  readonly #begin = Progress.begin();
  readonly #clients: Client[] = [];
  #onResponse: (client: Client, response: SeenResponse, at: number) => void = () => {};
  #lastAt = 0;
  #failure: string | undefined;
  /** How often each proxy that is to come back has tried; undefined while none is to. */
  #returning: Map<SceneProxy, number> | undefined;

  constructor(port: number, options: FleetOptions = {}) {
    this.#port = port;
    this.#options = options;
  }

  get size(): number {
    return this.#clients.length;
  }

  /** Why one of them lost its stream, if one has. */
  get lost(): string | undefined {
    return this.#failure;
  }

  /** Streams that the server has taken; those that are to come back count when they have. */
  get open(): number {
    return this.#clients.filter(({ openedAt }) => openedAt !== undefined).length;
  }

  /** Clients that have all they need. */
  get served(): number {
    return this.#clients.filter(({ readyAt }) => readyAt !== undefined).length;
  }

  /** Bytes received since the start of what is being measured. */
  get bytes(): number {
    return this.#clients.reduce((sum, { tally }) => sum + tally.bytes, 0);
  }

  /** Connects proxies all at once and resolves when the last one has all it needs; gives the time each one took in ms, in order. */
  async connect(proxies: readonly SceneProxy[]): Promise<readonly number[]> {
    const start = systemClock.monotonic();
    const first = this.size;
    for (const proxy of proxies) this.#clients.push(this.#open(proxy));
    await this.#until("every proxy is served", () => this.served === this.size);
    return this.#clients
      .slice(first)
      .map(({ readyAt = 0 }) => readyAt - start)
      .sort((a, b) => a - b);
  }

  /** Cuts some of the oldest connections without a word and opens them anew, as proxies do that restart; resolves when they are served again. */
  async replace(count: number): Promise<void> {
    const gone = this.#clients.splice(0, count);
    for (const client of gone) client.close();
    await this.connect(gone.map(({ proxy }) => proxy));
  }

  /** Makes a change and follows it to the clients, until nothing more comes for a while. */
  async observe(change: () => Promise<void>, expected: Expectation, quietMs = QUIET_MS): Promise<Propagation> {
    const awaited = new Set(this.#clients.filter(expected.clients));
    const times: number[] = [];
    for (const client of this.#clients) client.reset();
    this.#seen.lookFor(expected.marker === undefined ? undefined : { text: expected.marker });
    const start = systemClock.monotonic();
    this.#onResponse = (client, response, at) => {
      if (awaited.has(client) && expected.reached(client, response) && awaited.delete(client)) times.push(at - start);
    };
    await change();
    await this.#until("the change has reached every proxy", () => awaited.size === 0);
    await this.quiet(quietMs);
    this.#onResponse = () => {};
    return {
      times,
      touched: this.#clients.filter(({ tally }) => tally.messages > 0).length,
      messages: this.#clients.reduce((sum, { tally }) => sum + tally.messages, 0),
      bytes: this.bytes,
    };
  }

  /** Tells of each response in which such a marker is, until what it gives is called. */
  follow(marker: Marker, heard: (client: Client, markers: ReadonlySet<string>, at: number) => void): () => void {
    this.#seen.lookFor(marker);
    this.#onResponse = (client, { markers }, at) => {
      if (markers.size > 0) heard(client, markers, at);
    };
    return () => {
      this.#onResponse = () => {};
    };
  }

  /**
   * Makes a change that costs every proxy its stream, such as a restart of the server, and has them come back with what they hold, as Envoy does: each after a time
   * of its own, longer each time it is refused. Resolves when each has been served: its new stream was answered, or, where there was nothing to say, has been
   * open for a while beside a server that has come back. Gives the time each one took in ms, in order.
   */
  async comeBack(restart: () => Promise<void>): Promise<Comeback> {
    for (const client of this.#clients) client.reset();
    this.#returning = new Map();
    const start = systemClock.monotonic();
    await restart();
    const back = systemClock.monotonic();
    const servedAt = ({ openedAt, answeredAt }: Client): number | undefined => answeredAt ?? (openedAt && Math.max(openedAt, back));
    const silent = (at: number): boolean => systemClock.monotonic() - at >= SERVED_MS;
    const served = (client: Client): boolean => {
      const at = servedAt(client);
      return at !== undefined && at > start && (client.answeredAt !== undefined || silent(at));
    };
    await this.#until("every proxy has come back", () => this.#clients.every(served));
    // Whoever was answered may be sent more.
    if (this.#clients.some(({ answeredAt }) => answeredAt !== undefined)) await this.quiet(SERVED_MS);
    this.#returning = undefined;
    const times = this.#clients.map((client) => (servedAt(client) ?? back) - start).sort((a, b) => a - b);
    return { times, answered: this.#clients.filter(({ answeredAt }) => answeredAt !== undefined).length, bytes: this.bytes };
  }

  /** Resolves when nothing came for a while. */
  async quiet(quietMs = QUIET_MS): Promise<void> {
    const since = systemClock.monotonic();
    await this.#until("responses stop", () => systemClock.monotonic() - Math.max(since, this.#lastAt) >= quietMs);
  }

  /** Resources that are new from now on are searched for this text. */
  lookFor(marker: string): void {
    this.#seen.lookFor({ text: marker });
  }

  /** Each takes some bytes more, although none reads any more. */
  trickle(bytes: number): void {
    for (const client of this.#clients) client.trickle(bytes);
  }

  /** None of them reads any more. */
  stall(): void {
    for (const client of this.#clients) client.stall();
  }

  close(): void {
    for (const client of this.#clients.splice(0)) client.close();
  }

  #open(proxy: SceneProxy, begin = this.#begin): Client {
    const { window, secure } = this.#options;
    return new Client(proxy, {
      ...(window !== undefined && { window }),
      ...(secure !== undefined && { secure }),
      port: this.#port,
      seen: this.#seen,
      begin,
      now: systemClock.monotonic,
      received: (from, response, at) => {
        this.#lastAt = at;
        this.#options.received?.(from, response);
        this.#onResponse(from, response, at);
      },
      lost: (from, reason) => {
        if (this.#returning !== undefined) this.#backOff(from, this.#returning);
        else if (this.#options.comesAgain === true && from.readyAt === undefined) systemClock.after(AGAIN_MS, () => this.#openAgain(from));
        else this.#failure ??= `${from.proxy.name} lost its stream: ${reason}`;
      },
    });
  }

  #openAgain(lost: Client, begin?: Progress): void {
    const place = this.#clients.indexOf(lost);
    if (place >= 0) this.#clients[place] = this.#open(lost.proxy, begin);
  }

  #backOff(lost: Client, attempts: Map<SceneProxy, number>): void {
    lost.openedAt = undefined;
    const attempt = attempts.get(lost.proxy) ?? 0;
    attempts.set(lost.proxy, attempt + 1);
    const most = Math.min(LONGEST_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** attempt);
    const share = ((this.#clients.indexOf(lost) + attempt + 1) * GOLDEN) % 1;
    systemClock.after(share * most, () => this.#openAgain(lost, lost.progress));
  }

  async #until(what: string, holds: () => boolean): Promise<void> {
    const { patienceMs = TIMEOUT_MS } = this.#options;
    const deadline = systemClock.monotonic() + patienceMs;
    while (!holds()) {
      if (this.#failure !== undefined) throw new Error(this.#failure);
      if (systemClock.monotonic() > deadline) throw new Error(`${what}: not within ${patienceMs} ms`);
      await systemClock.sleep(5);
    }
  }
}
