import { afterEach, describe, expect, it } from "vitest";
import { eventually } from "../../test/support/wait.ts";
import { type Clock, systemClock } from "../base/clock.ts";
import { silentLog } from "../base/log.ts";
import type { WatchEvent } from "./answer-body.ts";
import type { KubeClient, ListOptions, WatchOptions } from "./kube-client.ts";
import { KubeError } from "./kube-error.ts";
import type { ListHead } from "./list-reader.ts";
import { Reflector, type ReflectorTimes } from "./reflector.ts";
import type { KubeObject } from "./resource-type.ts";

const object = (name: string, version: string): KubeObject => ({ metadata: { namespace: "shop", name, resourceVersion: version } });
const event = (type: string, name: string, version: string): WatchEvent => ({ type, object: object(name, version) });
const gone = new KubeError({ status: 410, reason: "Expired", message: "too old" });
const silent = new KubeError({ status: 0, reason: "Silent", message: "it said nothing" });
const refused = new KubeError({ status: 0, reason: "Unreachable", message: "no" });

/** A server in the hands of the test: what it lists, and the watches that are open. */
class Server implements Pick<KubeClient, "listEach" | "watch"> {
  objects: KubeObject[] = [];
  version = "1";
  fault: KubeError | undefined;
  pageSize = 2;
  /** Where in the list each began; how many were asked for at most, and from which version. */
  readonly lists: string[] = [];
  readonly limits: (number | undefined)[] = [];
  readonly versions: (string | undefined)[] = [];
  hasMemory = true;
  /** A page breaks after its first object. */
  breaks: (continuedAt: string) => boolean = () => false;
  readonly watchedFrom: string[] = [];
  readonly timeouts: (number | undefined)[] = [];
  /** Names of which nothing is read any more. */
  readonly unread = new Set<string>();
  #send: ((events: readonly WatchEvent[] | KubeError | undefined) => void) | undefined;

  async listEach(_type: unknown, options: ListOptions, take: (object: KubeObject) => void): Promise<ListHead> {
    const at = options.continue ?? "";
    this.lists.push(at);
    this.limits.push(options.limit);
    this.versions.push(options.resourceVersion);
    if (this.fault !== undefined) throw this.fault;
    if (!this.hasMemory && options.resourceVersion === "0")
      throw new KubeError({ status: 429, reason: "TooManyRequests", message: "storage is (re)initializing", retryAfterMs: 60_000 });
    const end = Number(at) + this.pageSize;
    for (const one of this.objects.slice(Number(at), end)) {
      take(one);
      if (this.breaks(at)) throw refused;
    }
    return { continue: end < this.objects.length ? String(end) : "", resourceVersion: this.version };
  }

  async *watch(_type: unknown, { resourceVersion, timeoutSeconds, signal }: WatchOptions) {
    if (this.fault !== undefined) throw this.fault;
    this.watchedFrom.push(resourceVersion);
    this.timeouts.push(timeoutSeconds);
    yield [];
    for (;;) {
      const next = await new Promise<readonly WatchEvent[] | KubeError | undefined>((resolve, reject) => {
        this.#send = resolve;
        signal.addEventListener("abort", () => reject(signal.reason), { once: true });
      });
      if (next === undefined) return;
      if (next instanceof KubeError) throw next;
      yield next;
    }
  }

  /** Events on the open watch, a fault that ends it, or nothing: its end. */
  async send(what?: readonly WatchEvent[] | KubeError): Promise<void> {
    const send = await eventually("a watch is open", () => this.#send);
    this.#send = undefined;
    send(what);
  }
}

const stops: AbortController[] = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop.abort();
});

function follow(
  server: Server,
  times: Partial<ReflectorTimes> = {},
  more: { readonly random?: () => number; readonly clock?: Clock } = {},
) {
  const held = new Map<string, string>();
  const changes: string[] = [];
  const reflector = new Reflector<string>({
    client: server,
    type: { group: "", version: "v1", plural: "things", namespaced: true },
    clock: systemClock,
    ...more,
    log: silentLog,
    shape: ({ metadata: { name, resourceVersion } }) =>
      name.startsWith("hidden") || server.unread.has(name) ? undefined : resourceVersion,
    changed: ({ upserts, deletes, first }) => {
      changes.push(`${first ? "first " : ""}+${[...upserts.keys()].join()} -${deletes.join()}`);
      for (const [key, value] of upserts) held.set(key, value);
      for (const key of deletes) held.delete(key);
    },
    times: { firstRetry: 5, mostRetry: 20, checkGrace: 5, shortWatch: 0, ...times },
  });
  const stop = new AbortController();
  stops.push(stop);
  void reflector.run(stop.signal);
  return { reflector, changes, held };
}

describe("a reflector", () => {
  it("lists page by page, then follows events; bookmarks move it on", async () => {
    const server = new Server();
    server.objects = ["a", "b", "c", "d", "e"].map((name) => object(name, "1"));
    const { changes, held } = follow(server);
    await eventually("the first list", () => changes.length === 1);
    expect(changes).toEqual(["first +shop/a,shop/b,shop/c,shop/d,shop/e -"]);
    expect(server.lists).toEqual(["", "2", "4"]);
    await server.send([event("MODIFIED", "a", "2"), event("DELETED", "b", "3"), event("ADDED", "f", "4")]);
    await eventually("the events", () => changes.length === 2);
    expect([...held]).toEqual([
      ["shop/a", "2"],
      ["shop/c", "1"],
      ["shop/d", "1"],
      ["shop/e", "1"],
      ["shop/f", "4"],
    ]);
    await server.send([{ type: "BOOKMARK", object: { metadata: { resourceVersion: "9" } } }]);
    await server.send();
    await eventually("the next watch", () => server.watchedFrom.length === 2);
    expect(server.watchedFrom).toEqual(["1", "9"]);
  });

  it("says nothing of a list that breaks after some of it", async () => {
    const server = new Server();
    server.objects = ["a", "b", "c"].map((name) => object(name, "1"));
    server.breaks = (at) => at === "2" && server.lists.length === 2;
    const { changes } = follow(server);
    await eventually("the first list", () => changes.length === 1);
    expect(changes).toEqual(["first +shop/a,shop/b,shop/c -"]);
    expect(server.lists).toEqual(["", "2", "", "2"]);
  });

  it("takes what the server has in memory at first, and later what is true now, by pages", async () => {
    const server = new Server();
    server.objects = ["a", "b", "c"].map((name) => object(name, "1"));
    const { changes } = follow(server);
    await eventually("the first list", () => changes.length === 1);
    await server.send(gone);
    await eventually("the second list", () => server.lists.length === 4);
    expect(server.versions).toEqual(["0", undefined, undefined, undefined]);
    expect(server.limits.map((limit) => limit !== undefined)).toEqual([false, true, true, true]);
  });

  it("does not wait for the server's memory to be filled", async () => {
    const server = new Server();
    server.hasMemory = false;
    server.objects = ["a", "b", "c"].map((name) => object(name, "1"));
    const { changes, reflector } = follow(server);
    await eventually("the first list", () => changes.length === 1);
    expect([server.versions, reflector.state.lists]).toEqual([["0", undefined, undefined], 1]);
  });

  it("has heard of the server while a list is still coming", async () => {
    const server = new Server();
    const { promise: rest, resolve: goOn } = Promise.withResolvers<void>();
    const listEach = server.listEach.bind(server);
    server.objects = [object("a", "1")];
    server.listEach = async (type, options, take) => {
      const head = await listEach(type, options, take);
      await rest;
      return head;
    };
    const { reflector, changes } = follow(server);
    await eventually("a part of it", () => reflector.state.heardAt);
    expect([reflector.state.synced, changes]).toEqual([false, []]);
    goOn();
    await eventually("the list", () => reflector.state.synced);
  });

  it("lists again when versions are gone, and tells what differs and nothing else", async () => {
    const server = new Server();
    server.objects = [object("a", "1"), object("b", "1"), object("c", "1")];
    const { changes } = follow(server);
    await eventually("the first list", () => changes.length === 1);
    server.objects = [object("a", "1"), object("b", "2"), object("d", "3")];
    await server.send(gone);
    await eventually("the second list", () => changes.length === 2);
    expect(changes[1]).toBe("+shop/b,shop/d -shop/c");
  });

  it("says nothing because of a list that fails, and knows since when", async () => {
    const server = new Server();
    server.objects = [object("a", "1"), object("b", "1"), object("c", "1")];
    const { reflector, changes, held } = follow(server);
    await eventually("the first list", () => changes.length === 1);
    server.fault = refused;
    await server.send(gone);
    await eventually("it fails", () => reflector.state.state === "failing");
    await eventually("it goes on trying", () => server.lists.length > 6);
    expect([changes.length, held.size, reflector.state.synced]).toEqual([1, 3, true]);
    expect(reflector.state.failingSince).toBeGreaterThan(0);
    server.fault = undefined;
    await eventually("it is well again", () => reflector.state.state === "ok");
    expect([changes.length, reflector.state.failingSince]).toEqual([1, undefined]);
  });

  it("leaves out what nobody reads, and takes it away when it becomes so", async () => {
    const server = new Server();
    server.objects = [object("hidden-1", "1"), object("a", "1")];
    const { changes, held } = follow(server);
    await eventually("the first list", () => changes.length === 1);
    expect([...held.keys()]).toEqual(["shop/a"]);
    await server.send([event("MODIFIED", "hidden-2", "2"), event("ADDED", "b", "3")]);
    await eventually("the events", () => changes.length === 2);
    expect([...held.keys()]).toEqual(["shop/a", "shop/b"]);
    server.unread.add("a");
    await server.send([event("MODIFIED", "a", "4")]);
    await eventually("it is taken away by an event", () => !held.has("shop/a"));
    server.unread.add("b");
    server.objects = [object("hidden-1", "1"), object("a", "4"), object("b", "5")];
    await server.send(gone);
    await eventually("and by a list", () => held.size === 0);
  });

  it("asks for watches that end at times of their own, between once and twice as late as it must", async () => {
    for (const [random, seconds] of [
      [0, 300],
      [0.5, 450],
      [0.999, 600],
    ] as const) {
      const server = new Server();
      follow(server, {}, { random: () => random });
      await eventually("a watch is open", () => server.timeouts.length === 1);
      expect(server.timeouts).toEqual([seconds]);
    }
  });

  it("waits a time of its own before it tries again, longer each time", async () => {
    const server = new Server();
    server.fault = refused;
    const waits: number[] = [];
    const clock: Clock = {
      ...systemClock,
      sleep(ms, signal) {
        waits.push(ms);
        return systemClock.sleep(1, signal);
      },
    };
    follow(server, { firstRetry: 1_000, mostRetry: 8_000 }, { random: () => 0.5, clock });
    await eventually("it has tried", () => waits.length >= 5);
    expect(waits.slice(0, 5)).toEqual([750, 1_500, 3_000, 6_000, 6_000]);
  });

  it("finds an event that never came by comparing", async () => {
    const server = new Server();
    server.objects = [object("a", "1"), object("b", "1")];
    const { reflector, changes, held } = follow(server, { check: 20 });
    await eventually("the first list", () => changes.length === 1);
    server.objects = [object("a", "2"), object("c", "2")];
    await eventually("what was missed", () => held.get("shop/a") === "2" && held.has("shop/c") && !held.has("shop/b"));
    expect(reflector.state.differences).toBe(3);
  });

  it("opens its watch anew when it is told to, from where it was", async () => {
    const server = new Server();
    const { reflector, changes } = follow(server);
    await eventually("the first list", () => changes.length === 1 && server.watchedFrom.length === 1);
    await server.send([event("ADDED", "a", "7")]);
    await eventually("the event", () => changes.length === 2);
    reflector.reopen();
    await eventually("the next watch", () => server.watchedFrom.length === 2);
    expect([server.watchedFrom, server.lists.length]).toEqual([["1", "7"], 1]);
  });

  it("opens a watch anew that carried nothing, without taking that for a failure", async () => {
    const server = new Server();
    const { reflector, changes } = follow(server, { firstRetry: 600_000, mostRetry: 600_000 });
    await eventually("the first list", () => changes.length === 1 && server.watchedFrom.length === 1);
    await server.send([event("ADDED", "a", "7")]);
    await server.send(silent);
    await eventually("the next watch", () => server.watchedFrom.length === 2);
    expect([server.watchedFrom, server.lists.length, reflector.state.state]).toEqual([["1", "7"], 1, "ok"]);
    server.fault = refused;
    await server.send(silent);
    await eventually("a server that cannot be reached is a failure", () => reflector.state.state === "failing");
  });

  it("does not hammer a server that ends watches at once", async () => {
    const server = new Server();
    const { reflector, changes } = follow(server, { shortWatch: 60_000, firstRetry: 60_000, mostRetry: 60_000 });
    await eventually("the first list", () => changes.length === 1);
    await server.send();
    await eventually("it fails", () => reflector.state.state === "failing");
    expect(server.watchedFrom.length).toBe(1);
  });
});
