import assert from "node:assert/strict";
import { create, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { it } from "vitest";
import { holds } from "../../test/support/holds.ts";
import { manualClock } from "../../test/support/manual-clock.ts";
import { connect, envoyProviders, type Seen, testView } from "../../test/support/xds-model.ts";
import { silentLog } from "../base/log.ts";
import { DiscoveryRequestSchema } from "../gen/envoy/service/discovery/v3/discovery_pb.js";
import { LISTENER_TYPE, ROUTE_TYPE } from "../wire/type-urls.ts";
import { createXdsServer } from "./server.ts";

const NAMES = ["alpha", "beta", "gamma", "delta"];

type Step =
  | { readonly type: "ask"; readonly names: readonly string[] }
  | { readonly type: "set"; readonly name: string; readonly content: string }
  | { readonly type: "delete"; readonly name: string }
  | { readonly type: "push" | "receive" | "settle" | "reconnect" };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ type: fc.constant("ask" as const), names: fc.uniqueArray(fc.constantFrom("*", ...NAMES), { maxLength: 4 }) }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ type: fc.constant("set" as const), name: fc.constantFrom(...NAMES), content: fc.constantFrom("1", "2") }),
  },
  { weight: 1, arbitrary: fc.record({ type: fc.constant("delete" as const), name: fc.constantFrom(...NAMES) }) },
  {
    weight: 9,
    arbitrary: fc.record({
      type: fc.constantFrom("push" as const, "receive" as const, "settle" as const, "reconnect" as const),
    }),
  },
);

it("a client of whole lists that asks for others while responses and requests cross ends with what it wants of what there is", async () => {
  await holds(
    fc.asyncProperty(
      fc.constantFrom(LISTENER_TYPE, ROUTE_TYPE),
      fc.array(step, { minLength: 8, maxLength: 40, size: "max" }),
      async (typeUrl, steps) => {
        const client = new Client(typeUrl);
        for (const one of steps) await client.take(one);
        await client.end();
      },
    ),
    { numRuns: 300 },
  );
});

/** A client of the state-of-the-world variant. What the server says reaches it late: meanwhile it may say something about what came before. */
class Client {
  readonly #table = envoyProviders();
  readonly #server = createXdsServer({
    providers: this.#table.all,
    viewOf: ({ id }) => testView(id),
    clock: manualClock(),
    log: silentLog,
  });
  readonly #connection = connect(this.#server, {
    variant: "sotw",
    answers: false,
    judge: (response, contents) => void this.#onWire.push({ response, contents }),
  });
  readonly #typeUrl: string;
  readonly #provider;
  #names: readonly string[];
  #isExplicit: boolean;
  #held = new Map<string, string>();
  #onWire: { readonly response: Seen; readonly contents: ReadonlyMap<string, string> }[] = [];
  #nonce = "";
  #version = "";
  #named = false;

  constructor(typeUrl: string) {
    this.#typeUrl = typeUrl;
    this.#provider = typeUrl === LISTENER_TYPE ? this.#table.listeners : this.#table.routes;
    this.#names = typeUrl === LISTENER_TYPE ? [] : ["alpha"];
    this.#isExplicit = this.#names.length > 0;
    this.#say();
  }

  async take(one: Step): Promise<void> {
    if (one.type === "ask") this.#ask(this.#typeUrl === LISTENER_TYPE ? one.names : one.names.filter((name) => name !== "*"));
    else if (one.type === "set") this.#provider.set(one.name, one.content);
    else if (one.type === "delete") this.#provider.delete(one.name);
    else if (one.type === "push") this.#server.push("test");
    else if (one.type === "receive") this.#receive();
    else if (one.type === "reconnect") this.#reconnect();
    else await this.#turns();
  }

  async end(): Promise<void> {
    this.#server.push("end");
    for (let round = 0; round < 6; round += 1) {
      this.#receive();
      await this.#turns();
    }
    const { resources } = this.#provider.offered(testView(""), { wildcard: true, names: { id: 0, names: new Set() } });
    for (const [name, { version }] of resources) if (this.#wants(name)) assert.equal(this.#held.get(name), version, name);
    if (this.#typeUrl !== LISTENER_TYPE) return; // That another is gone cannot be said.
    for (const name of this.#held.keys()) assert.ok(resources.has(name), `${name} is gone`);
  }

  #wants(name: string): boolean {
    return this.#isWildcard || this.#names.includes(name);
  }

  get #isWildcard(): boolean {
    return this.#names.includes("*") || (!this.#isExplicit && this.#typeUrl === LISTENER_TYPE);
  }

  #ask(names: readonly string[]): void {
    this.#names = names;
    this.#isExplicit ||= names.length > 0;
    for (const name of [...this.#held.keys()]) if (!this.#wants(name)) this.#held.delete(name);
    this.#say();
  }

  #reconnect(): void {
    if (this.#names.length === 0 && this.#isExplicit) return; // It would ask for nothing, or begin anew.
    this.#onWire = [];
    this.#nonce = "";
    this.#named = false;
    this.#connection.again([]);
    this.#say();
  }

  #receive(): void {
    for (const { response, contents } of this.#onWire.splice(0)) {
      if (this.#typeUrl === LISTENER_TYPE) this.#held.clear();
      for (const [name, version] of contents) if (this.#wants(name)) this.#held.set(name, version);
      this.#nonce = response.nonce;
      this.#version = response.version;
      this.#say(); // At once, as Envoy does: one that changed its mind twice before it answers would have the server know of neither.
    }
  }

  #say(): void {
    const node = this.#named ? {} : { node: { id: "sidecar~10.0.0.1~a.default~default.svc.cluster.local" } };
    this.#named = true;
    const request = { typeUrl: this.#typeUrl, resourceNames: [...this.#names], responseNonce: this.#nonce, versionInfo: this.#version };
    this.#connection.say(toBinary(DiscoveryRequestSchema, create(DiscoveryRequestSchema, { ...request, ...node })));
  }

  async #turns(): Promise<void> {
    for (let turn = 0; turn < 4; turn += 1) {
      await new Promise((resolve) => setImmediate(resolve));
      await this.#server.idle();
    }
  }
}
