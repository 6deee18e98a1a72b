import assert from "node:assert/strict";
import fc from "fast-check";
import { it } from "vitest";
import { holds } from "../../test/support/holds.ts";
import { manualClock } from "../../test/support/manual-clock.ts";
import { type Connection, connect, envoyProviders, HOSTS_NODE, type Seen, testView } from "../../test/support/xds-model.ts";
import { silentLog } from "../base/log.ts";
import { ROUTE_TYPE, VIRTUAL_HOST_TYPE } from "../wire/type-urls.ts";
import { createXdsServer } from "./server.ts";

type Step =
  | { readonly type: "set"; readonly host: string; readonly content: string }
  | { readonly type: "delete"; readonly host: string }
  | { readonly type: "table" | "subscribe" | "unsubscribe"; readonly table: string }
  | { readonly type: "push" | "settle" | "hold" | "reconnect" };

const table = fc.constantFrom("80", "81", "82");
const host = fc.tuple(table, fc.constantFrom("a", "b", "c")).map((parts) => parts.join("/"));
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ type: fc.constant("set" as const), host, content: fc.constantFrom("1", "2", "3") }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant("delete" as const), host }) },
  { weight: 4, arbitrary: fc.record({ type: fc.constantFrom("table" as const, "subscribe" as const, "unsubscribe" as const), table }) },
  { weight: 6, arbitrary: fc.record({ type: fc.constantFrom("push" as const, "settle" as const, "hold" as const, "reconnect" as const) }) },
);

it("whatever a client asks for, loses and forgets, it ends with the hosts of its tables", async () => {
  await holds(
    fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 60, size: "max" }), async (steps) => {
      const mesh = new Mesh();
      for (const one of steps) await mesh.take(one);
      await mesh.end();
    }),
    { numRuns: 300 },
  );
});

/** A server and a client that keeps hosts as Envoy does: with their table, and no longer than that, whatever it was sent and acknowledged. */
class Mesh {
  readonly #table = envoyProviders();
  readonly #clock = manualClock();
  readonly #server = createXdsServer({
    providers: this.#table.all,
    viewOf: (node) => testView(node.id),
    clock: this.#clock,
    log: silentLog,
  });
  readonly #connection: Connection;
  /** Version by host, of the tables that are in use. */
  readonly #inUse = new Map<string, Map<string, string>>();
  readonly #unanswered: Seen[] = [];
  #holdsBack = false;
  #asksForHosts = false;
  #letGo = false;
  #version = 0;

  constructor() {
    for (const name of ["80", "81", "82"]) this.#table.routes.set(name, "0");
    this.#connection = connect(this.#server, {
      variant: "delta",
      node: HOSTS_NODE,
      answers: false,
      judge: (response, contents) => void this.#apply(response, contents),
    });
  }

  async take(one: Step): Promise<void> {
    const { client } = this.#connection;
    switch (one.type) {
      case "set":
        return this.#table.hosts.set(one.host, one.content);
      case "delete":
        return this.#table.hosts.delete(one.host);
      case "table":
        this.#version += 1;
        return this.#table.routes.set(one.table, String(this.#version));
      case "subscribe":
        // Envoy asks for a table once, and again only after it let go of it.
        if (!client.wanted(ROUTE_TYPE).has(one.table)) client.subscribe(ROUTE_TYPE, [one.table]);
        return;
      case "unsubscribe":
        if (!client.wanted(ROUTE_TYPE).has(one.table)) return;
        this.#inUse.delete(one.table);
        this.#letGo = true;
        return client.unsubscribe(ROUTE_TYPE, [one.table]);
      case "push":
        return void this.#server.push("test");
      case "reconnect":
        // Envoy goes on claiming the hosts of a table that it let go of until it is told that they are gone. That one who asks for the table again
        // at once, and loses the wire before it was told, does not have them, nobody can know; but Envoy lets go of tables with drained listeners.
        if (this.#letGo) await this.take({ type: "settle" });
        this.#letGo = false;
        this.#unanswered.length = 0;
        return this.#connection.again([ROUTE_TYPE, VIRTUAL_HOST_TYPE]);
      case "settle":
      case "hold":
        this.#holdsBack = one.type === "hold";
        return this.#settle();
    }
  }

  async end(): Promise<void> {
    this.#holdsBack = false;
    this.#server.push("end");
    for (let round = 0; round < 4; round += 1) {
      await this.#settle();
      this.#clock.advance(6_000);
    }
    const names = new Set(this.#connection.client.wanted(ROUTE_TYPE));
    const offered = this.#table.hosts.offered(testView(HOSTS_NODE), { wildcard: true, names: { id: -1, names } }).resources;
    const inUse = [...this.#inUse.values()].flatMap((hosts) => [...hosts]);
    assert.deepEqual(new Map(inUse.sort()), new Map([...offered].map(([name, { version }]): [string, string] => [name, version]).sort()));
    this.#connection.client.seen.length = 0;
    this.#server.push("nothing changed");
    await this.#settle();
    this.#connection.again([ROUTE_TYPE, VIRTUAL_HOST_TYPE]);
    await this.#settle();
    const again = this.#connection.client.seen.filter(({ names: changed, removed }) => changed.length + removed.length > 0);
    assert.deepEqual(again, [], "nothing changed, nothing is sent");
  }

  #apply(response: Seen, contents: ReadonlyMap<string, string>): void {
    this.#unanswered.push(response);
    const { client } = this.#connection;
    if (response.typeUrl === ROUTE_TYPE) {
      for (const name of contents.keys())
        if (client.wanted(ROUTE_TYPE).has(name) && !this.#inUse.has(name)) this.#inUse.set(name, new Map());
      return;
    }
    const hostsOf = (name: string): Map<string, string> | undefined => this.#inUse.get(name.slice(0, name.lastIndexOf("/")));
    for (const [name, version] of contents) hostsOf(name)?.set(name, version);
    for (const name of response.removed) hostsOf(name)?.delete(name);
  }

  async #settle(): Promise<void> {
    for (let turn = 0; turn < 60; turn += 1) {
      await new Promise((resolve) => setImmediate(resolve));
      await this.#server.idle();
      if (this.#inUse.size > 0 && !this.#asksForHosts) {
        this.#asksForHosts = true;
        this.#connection.client.subscribe(VIRTUAL_HOST_TYPE);
      }
      if (this.#holdsBack && turn > 4) return;
      const answers = this.#holdsBack ? [] : this.#unanswered.splice(0);
      for (const response of answers) this.#connection.client.answer(response);
      if (!this.#holdsBack && answers.length === 0 && turn > 6) return;
    }
  }
}
