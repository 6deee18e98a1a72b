import assert from "node:assert/strict";
import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { it } from "vitest";
import { holds } from "../../test/support/holds.ts";
import { manualClock } from "../../test/support/manual-clock.ts";
import { connect, envoyProviders, type Seen, testView } from "../../test/support/xds-model.ts";
import { silentLog } from "../base/log.ts";
import { DeltaDiscoveryRequestSchema } from "../gen/envoy/service/discovery/v3/discovery_pb.js";
import { LISTENER_TYPE } from "../wire/type-urls.ts";
import { createXdsServer } from "./server.ts";

const NAMES = ["alpha", "beta", "gamma", "delta"];
const word = fc.constantFrom("*", ...NAMES);
const words = fc.uniqueArray(word, { maxLength: 3 });

type Request = Extract<MessageInitShape<typeof DeltaDiscoveryRequestSchema>, { readonly $typeName?: never }>;

type Step =
  | { readonly type: "ask"; readonly join: readonly string[]; readonly leave: readonly string[] }
  | { readonly type: "set"; readonly name: string; readonly content: string }
  | { readonly type: "delete"; readonly name: string }
  | { readonly type: "push" | "answer" | "settle" | "reconnect" };

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ type: fc.constant("ask" as const), join: words, leave: words }) },
  {
    weight: 4,
    arbitrary: fc.record({ type: fc.constant("set" as const), name: fc.constantFrom(...NAMES), content: fc.constantFrom("1", "2") }),
  },
  { weight: 2, arbitrary: fc.record({ type: fc.constant("delete" as const), name: fc.constantFrom(...NAMES) }) },
  {
    weight: 6,
    arbitrary: fc.record({ type: fc.constantFrom("push" as const, "answer" as const, "settle" as const, "reconnect" as const) }),
  },
);

it("whoever joins and leaves `*` and names, in whatever order, ends with what it wants of what there is", async () => {
  await holds(
    fc.asyncProperty(fc.boolean(), fc.array(step, { minLength: 8, maxLength: 40, size: "max" }), async (isLegacy, steps) => {
      const client = new Client(isLegacy);
      for (const one of steps) await client.take(one);
      await client.end();
    }),
    { numRuns: 300 },
  );
});

/** A client of the delta variant that keeps to the letter: it holds what it wants of what it was sent, and asks for `*` in either way. */
class Client {
  readonly #table = envoyProviders();
  readonly #server = createXdsServer({
    providers: this.#table.all,
    viewOf: ({ id }) => testView(id),
    clock: manualClock(),
    log: silentLog,
  });
  readonly #connection = connect(this.#server, {
    variant: "delta",
    answers: false,
    judge: (response, contents) => this.#receive(response, contents),
  });
  readonly #names = new Set<string>();
  #everything: boolean;
  #held = new Map<string, string>();
  #unanswered: Seen[] = [];
  #named = false;

  constructor(isLegacy: boolean) {
    this.#everything = true;
    this.#say({ resourceNamesSubscribe: isLegacy ? [] : ["*"] });
  }

  async take(one: Step): Promise<void> {
    if (one.type === "ask") this.#ask(one);
    else if (one.type === "set") this.#table.listeners.set(one.name, one.content);
    else if (one.type === "delete") this.#table.listeners.delete(one.name);
    else if (one.type === "push") this.#server.push("test");
    else if (one.type === "answer") this.#answer();
    else if (one.type === "reconnect") this.#reconnect();
    else await this.#turns();
  }

  async end(): Promise<void> {
    this.#server.push("end");
    for (let round = 0; round < 6; round += 1) {
      this.#answer();
      await this.#turns();
    }
    const { resources } = this.#table.listeners.offered(testView(""), { wildcard: true, names: { id: 0, names: new Set() } });
    const wanted = [...resources].filter(([name]) => this.#wants(name)).map(([name, { version }]) => [name, version]);
    assert.deepEqual([...this.#held].sort(), wanted.sort());
  }

  #wants(name: string): boolean {
    return this.#everything || this.#names.has(name);
  }

  #ask({ join, leave }: { readonly join: readonly string[]; readonly leave: readonly string[] }): void {
    const left = leave.filter((name) => !join.includes(name) && (name === "*" ? this.#everything : this.#names.has(name)));
    if (join.length + left.length === 0) return;
    for (const name of join) if (name !== "*") this.#names.add(name);
    for (const name of left) this.#names.delete(name);
    this.#everything = (this.#everything && !left.includes("*")) || join.includes("*");
    for (const name of [...this.#held.keys()]) if (!this.#wants(name)) this.#held.delete(name);
    this.#say({ resourceNamesSubscribe: [...join], resourceNamesUnsubscribe: left });
  }

  #reconnect(): void {
    this.#unanswered = [];
    this.#named = false;
    this.#connection.again([]);
    const names = [...(this.#everything ? ["*"] : []), ...this.#names];
    if (names.length > 0) this.#say({ resourceNamesSubscribe: names, initialResourceVersions: Object.fromEntries(this.#held) });
    else {
      // Nobody can say at first that it wants nothing.
      this.#everything = true;
      this.#say({});
    }
  }

  #receive(response: Seen, contents: ReadonlyMap<string, string>): undefined {
    for (const [name, version] of contents) if (this.#wants(name)) this.#held.set(name, version);
    for (const name of response.removed) this.#held.delete(name);
    this.#unanswered.push(response);
  }

  #answer(): void {
    for (const { nonce } of this.#unanswered.splice(0)) this.#say({ responseNonce: nonce });
  }

  #say(request: Request): void {
    const node = this.#named ? {} : { node: { id: "sidecar~10.0.0.1~a.default~default.svc.cluster.local" } };
    this.#named = true;
    this.#connection.say(
      toBinary(DeltaDiscoveryRequestSchema, create(DeltaDiscoveryRequestSchema, { typeUrl: LISTENER_TYPE, ...node, ...request })),
    );
  }

  async #turns(): Promise<void> {
    for (let turn = 0; turn < 4; turn += 1) {
      await new Promise((resolve) => setImmediate(resolve));
      await this.#server.idle();
    }
  }
}
