import assert from "node:assert/strict";
import fc from "fast-check";
import { describe, it } from "vitest";
import { holds } from "../../test/support/holds.ts";
import { manualClock } from "../../test/support/manual-clock.ts";
import { connect, envoyProviders, type ModelClient, resource, type Seen, testView } from "../../test/support/xds-model.ts";
import { silentLog } from "../base/log.ts";
import type { DiscoveryVariant } from "../wire/discovery-stream.ts";
import { CLUSTER_TYPE, ENDPOINT_TYPE } from "../wire/type-urls.ts";
import { createXdsServer } from "./server.ts";

type Step =
  | { readonly type: "set"; readonly of: "clusters" | "endpoints"; readonly name: string; readonly content: string }
  | { readonly type: "delete"; readonly of: "clusters" | "endpoints"; readonly name: string }
  | { readonly type: "fail"; readonly of: "clusters" | "endpoints"; readonly names: readonly string[] }
  | { readonly type: "push" | "settle" | "hold" | "reconnect" }
  | { readonly type: "subscribe" | "unsubscribe"; readonly name: string };

const name = fc.constantFrom("alpha-1", "beta-22", "gamma-3", "delta-44");
const of = fc.constantFrom("clusters" as const, "endpoints" as const);
/** "bad" is rejected by every client, "vague" too, but without saying which resource it is about. */
const content = fc.constantFrom("1", "2", "3", "bad", "vague");
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ type: fc.constant("set" as const), of, name, content }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant("delete" as const), of, name }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant("fail" as const), of, names: fc.uniqueArray(name, { maxLength: 1 }) }) },
  { weight: 6, arbitrary: fc.record({ type: fc.constantFrom("push" as const, "settle" as const, "hold" as const, "reconnect" as const) }) },
  { weight: 3, arbitrary: fc.record({ type: fc.constantFrom("subscribe" as const, "unsubscribe" as const), name }) },
);

describe("any sequence of changes, subscriptions, answers and reconnects", () => {
  for (const variant of ["delta", "sotw"] as const) {
    it(`${variant}: leaves the client with what is offered, and sends nothing twice without need`, async () => {
      await holds(
        fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 60, size: "max" }), async (steps) => {
          const world = new World(variant);
          for (const one of steps) await world.take(one);
          await world.end();
        }),
        { numRuns: 300 },
      );
    });
  }
});

/** A server, one client, and a second opinion on what the client may be sent. */
class World {
  readonly #table = envoyProviders();
  readonly #clock = manualClock();
  readonly #server = createXdsServer({
    providers: this.#table.all,
    viewOf: (node) => testView(node.id),
    clock: this.#clock,
    log: silentLog,
  });
  readonly #variant: DiscoveryVariant;
  readonly #connection;
  #holdsBack = false;
  readonly #unanswered: { readonly response: Seen; readonly error: string | undefined }[] = [];
  /** Names that may be sent although the client has them, with the reason. */
  readonly #excused = new Map<string, string>();

  readonly #faults: string[] = [];

  constructor(variant: DiscoveryVariant) {
    this.#variant = variant;
    this.#connection = connect(this.#server, {
      variant,
      answers: false,
      judge: (response, contents) => this.#judge(response, contents),
      appliesAnyway,
    });
    this.#client.subscribe(CLUSTER_TYPE);
  }

  get #client(): ModelClient {
    return this.#connection.client;
  }

  async take(one: Step): Promise<void> {
    // A state-of-the-world request carries the latest nonce, and so is an answer: a client cannot ask for more without answering first.
    if (this.#variant === "sotw" && (one.type === "subscribe" || one.type === "unsubscribe")) this.#answer();
    switch (one.type) {
      case "set":
        return this.#table[one.of].set(one.name, one.content);
      case "delete":
        return this.#table[one.of].delete(one.name);
      case "fail":
        this.#table[one.of].failed = one.names.map((failed) => ({ name: failed, message: "boom" }));
        return this.#table[one.of].changed();
      case "push":
        return void this.#server.push("test");
      case "settle":
        this.#holdsBack = false;
        return this.#settle();
      case "hold":
        this.#holdsBack = true;
        return this.#settle();
      case "reconnect":
        for (const held of [CLUSTER_TYPE, ENDPOINT_TYPE]) if (this.#variant === "sotw") this.#excuseAll(held, "reconnect");
        if (this.#warming().length > 0) this.#excuseAll(ENDPOINT_TYPE, "still warming");
        for (const one of this.#client.wanted(ENDPOINT_TYPE))
          if (!this.#client.held(ENDPOINT_TYPE).has(one)) this.#excused.set(`${ENDPOINT_TYPE} ${one}`, "asked for again");
        this.#unanswered.length = 0;
        return this.#connection.again(this.#warming().length > 0 ? [ENDPOINT_TYPE, CLUSTER_TYPE] : [CLUSTER_TYPE, ENDPOINT_TYPE]);
      case "subscribe":
        if (this.#variant === "delta" || !this.#client.wanted(ENDPOINT_TYPE).has(one.name))
          this.#excused.set(`${ENDPOINT_TYPE} ${one.name}`, "subscribed");
        return this.#client.subscribe(ENDPOINT_TYPE, [one.name]);
      case "unsubscribe":
        if (this.#client.wanted(ENDPOINT_TYPE).size > 0) this.#client.unsubscribe(ENDPOINT_TYPE, [one.name]);
    }
  }

  /** All is answered, all that failed is mended, and what is bad stays: the client must hold the rest. */
  async end(): Promise<void> {
    this.#holdsBack = false;
    for (const provider of [this.#table.clusters, this.#table.endpoints]) {
      provider.failed = [];
      provider.changed();
    }
    this.#server.push("end");
    for (let round = 0; round < 4; round += 1) {
      await this.#settle();
      this.#clock.advance(6_000);
    }
    await this.#settle();
    this.#compare(CLUSTER_TYPE, () => true);
    this.#compare(ENDPOINT_TYPE, (one) => this.#client.wanted(ENDPOINT_TYPE).has(one));
    this.#checkCompanions();
    assert.deepEqual(this.#faults, []);
    const sent = this.#client.seen.length;
    this.#server.push("nothing changed");
    await this.#settle();
    assert.equal(this.#client.seen.length, sent, "nothing changed, nothing is sent");
  }

  #compare(typeUrl: string, wants: (name: string) => boolean): void {
    const provider = typeUrl === CLUSTER_TYPE ? this.#table.clusters : this.#table.endpoints;
    const offered = provider.offered(testView(""), { wildcard: true, names: { id: 0, names: new Set() } }).resources;
    const held = this.#client.held(typeUrl);
    for (const [one, { version }] of offered) {
      if (!wants(one)) continue;
      if (isBad(typeUrl, one, version)) assert.notEqual(held.get(one), version);
      else assert.equal(held.get(one), version, `${typeUrl} ${one} is not what is offered`);
    }
    const mayLinger = this.#variant === "sotw" && typeUrl === ENDPOINT_TYPE;
    for (const one of held.keys()) assert.ok(mayLinger || offered.has(one), `${typeUrl} ${one} is not offered`);
  }

  #judge(response: Seen, contents: ReadonlyMap<string, string>): string | undefined {
    const { typeUrl } = response;
    const bad = [...contents].filter(([one, version]) => isBad(typeUrl, one, version));
    const whole = this.#variant === "sotw" && typeUrl === CLUSTER_TYPE;
    for (const [one, version] of contents) {
      const excuse = this.#excused.get(`${typeUrl} ${one}`);
      if (!whole && excuse === undefined && this.#client.held(typeUrl).get(one) === version)
        this.#faults.push(`${typeUrl} ${one} is sent twice`);
      if (bad.length === 0) this.#excused.delete(`${typeUrl} ${one}`);
      else this.#excused.set(`${typeUrl} ${one}`, "rejected");
      if (typeUrl === CLUSTER_TYPE) this.#excused.set(`${ENDPOINT_TYPE} ${one}`, "its cluster was sent");
    }
    for (const one of response.removed) {
      if (!this.#client.held(typeUrl).has(one) && !this.#excused.has(`${typeUrl} ${one}`))
        this.#faults.push(`${typeUrl} ${one} is removed in vain`);
      if (bad.length === 0) this.#excused.delete(`${typeUrl} ${one}`);
    }
    const vague = bad.some(([one, version]) => version === resource(typeUrl, one, "vague").version);
    const error =
      bad.length === 0
        ? undefined
        : vague
          ? "it is wrong"
          : `Error adding/updating cluster(s) ${bad.map(([one]) => `${one}: bad`).join(", ")}`;
    this.#unanswered.push({ response, error });
    return error;
  }

  /** After the last time a cluster was sent, its assignment was sent too (or said to be gone), if it is wanted. */
  #checkCompanions(): void {
    if (this.#variant === "sotw") return;
    for (const one of this.#warming()) {
      const offered = this.#table.endpoints
        .offered(testView(""), { wildcard: true, names: { id: 0, names: new Set() } })
        .resources.get(one);
      if (offered !== undefined && !isBad(ENDPOINT_TYPE, one, offered.version)) this.#faults.push(`${one} warms for ever`);
    }
  }

  /** Clusters whose assignment has not come since they did. Measured: an Envoy with such clusters opens its next stream with assignments, not clusters. */
  #warming(): readonly string[] {
    const { seen } = this.#client;
    return [...this.#client.wanted(ENDPOINT_TYPE)].filter((one) => {
      const cluster = seen.findLastIndex((response) => response.typeUrl === CLUSTER_TYPE && response.names.includes(one));
      const endpoint = seen.findLastIndex(
        (response) => response.typeUrl === ENDPOINT_TYPE && (response.names.includes(one) || response.removed.includes(one)),
      );
      return cluster > endpoint;
    });
  }

  #excuseAll(typeUrl: string, reason: string): void {
    for (const one of this.#client.held(typeUrl).keys()) this.#excused.set(`${typeUrl} ${one}`, reason);
  }

  async #settle(): Promise<void> {
    for (let turn = 0; turn < 60; turn += 1) {
      await new Promise((resolve) => setImmediate(resolve));
      await this.#server.idle();
      if (this.#holdsBack) {
        if (turn > 4) return;
        continue;
      }
      if (this.#answer() === 0 && turn > 6) return;
    }
  }

  #answer(): number {
    const answers = this.#unanswered.splice(0);
    for (const { response, error } of answers) this.#client.answer(response, error);
    return answers.length;
  }
}

const isBad = (typeUrl: string, one: string, version: string): boolean =>
  ["bad", "vague"].some((word) => resource(typeUrl, one, word).version === version);

const appliesAnyway = (typeUrl: string, one: string, version: string): boolean => typeUrl === CLUSTER_TYPE && !isBad(typeUrl, one, version);
