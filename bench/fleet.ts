import { systemClock } from "../src/base/clock.ts";
import { Client, type ClientDeps } from "./client.ts";
import { ResponseReader, type SeenResponse } from "./discovery-wire.ts";
import type { SceneProxy } from "./scene.ts";

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
  reached: (_, { resources }) => resources.some((one) => one.marker === marker),
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

/** After the last awaited response this long nothing may come for a change to be over. */
const QUIET_MS = 300;
const TIMEOUT_MS = 240_000;
/** The middle of what Envoy waits before it tries again the first time. */
const AGAIN_MS = 250;

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
  readonly #reader = new ResponseReader();
  readonly #clients: Client[] = [];
  #onResponse: (client: Client, response: SeenResponse, at: number) => void = () => {};
  #lastAt = 0;
  #failure: string | undefined;

  constructor(port: number, options: FleetOptions = {}) {
    this.#port = port;
    this.#options = options;
  }

  get size(): number {
    return this.#clients.length;
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
    this.#reader.lookFor(expected.marker);
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

  /** Resolves when nothing came for a while. */
  async quiet(quietMs = QUIET_MS): Promise<void> {
    const since = systemClock.monotonic();
    await this.#until("responses stop", () => systemClock.monotonic() - Math.max(since, this.#lastAt) >= quietMs);
  }

  /** Resources that are new from now on are searched for this text. */
  lookFor(marker: string): void {
    this.#reader.lookFor(marker);
  }

  /** None of them reads any more. */
  stall(): void {
    for (const client of this.#clients) client.stall();
  }

  close(): void {
    for (const client of this.#clients.splice(0)) client.close();
  }

  #open(proxy: SceneProxy): Client {
    const { window, secure } = this.#options;
    return new Client(proxy, {
      ...(window !== undefined && { window }),
      ...(secure !== undefined && { secure }),
      port: this.#port,
      reader: this.#reader,
      now: systemClock.monotonic,
      received: (from, response, at) => {
        this.#lastAt = at;
        this.#options.received?.(from, response);
        this.#onResponse(from, response, at);
      },
      lost: (from, reason) => {
        if (this.#options.comesAgain === true && from.readyAt === undefined) systemClock.after(AGAIN_MS, () => this.#openAgain(from));
        else this.#failure ??= `${from.proxy.name} lost its stream: ${reason}`;
      },
    });
  }

  #openAgain(lost: Client): void {
    const place = this.#clients.indexOf(lost);
    if (place >= 0) this.#clients[place] = this.#open(lost.proxy);
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
