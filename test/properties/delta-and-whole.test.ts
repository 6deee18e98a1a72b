import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { BinaryReader } from "@bufbuild/protobuf/wire";
import fc from "fast-check";
import { expect, it } from "vitest";
import { silentLog } from "../../src/base/log.ts";
import { NodeSchema } from "../../src/gen/envoy/config/core/v3/base_pb.js";
import {
  DeltaDiscoveryRequestSchema,
  DeltaDiscoveryResponseSchema,
  DiscoveryRequestSchema,
  DiscoveryResponseSchema,
} from "../../src/gen/envoy/service/discovery/v3/discovery_pb.js";
import { readNode } from "../../src/generate/proxy-view.ts";
import type { DiscoveryStreamEvents, DiscoveryVariant } from "../../src/wire/discovery-stream.ts";
import { CLUSTER_TYPE, ENDPOINT_TYPE, LISTENER_TYPE, ROUTE_TYPE } from "../../src/wire/type-urls.ts";
import { createXdsServer, type XdsServer } from "../../src/xds/server.ts";
import { holds } from "../support/holds.ts";
import { manualClock } from "../support/manual-clock.ts";
import { meshOf, type TestMesh } from "../support/mesh-from.ts";
import { type Doc, keyOf, textOf } from "./doc.ts";
import { randomDocs, type Writer } from "./random-mesh.ts";

const HOSTS = ["h0.test", "h1.test", "*.wild.test"];
const WRITER: Writer = {
  ...{ namespace: "a", mark: "own", net: "10.1", created: ["2026-01-01"], exportTo: [undefined, ["."]] },
  ...{ hosts: HOSTS, declares: HOSTS, delegates: ["a/own-delegate-0"] },
};
const NODE = create(NodeSchema, { id: "sidecar~10.1.9.9~web.a~a.svc.cluster.local", metadata: { NAMESPACE: "a", LABELS: { app: "web" } } });
/** Of these all are wanted; the others are asked for by name. */
const WHOLE: readonly string[] = [CLUSTER_TYPE, LISTENER_TYPE];
const NAMED: readonly string[] = [ENDPOINT_TYPE, ROUTE_TYPE];

interface Said {
  readonly subscribe?: readonly string[];
  readonly unsubscribe?: readonly string[];
  readonly nonce?: string;
}

/** Holds what the protocol says it holds, by name, as bytes. */
class Client {
  readonly held = new Map<string, Map<string, string>>([...WHOLE, ...NAMED].map((typeUrl) => [typeUrl, new Map()]));
  readonly #variant: DiscoveryVariant;
  readonly #events: DiscoveryStreamEvents;
  readonly #asked = new Map<string, readonly string[]>();
  readonly #nonces = new Map<string, string>();
  #named = false;

  constructor(server: XdsServer, variant: DiscoveryVariant) {
    this.#variant = variant;
    this.#events = server.accept({
      variant,
      peer: { address: "127.0.0.1:1", header: () => undefined, certificate: undefined },
      begin() {},
      send: (message, flushed) =>
        queueMicrotask(() => {
          flushed();
          this.#take(Buffer.concat(message));
        }),
      close: (status, reason) => expect.fail(`closed with ${status}: ${reason}`),
      abort: () => expect.fail("cut"),
      progress: () => 0,
      pause() {},
      resume() {},
    });
  }

  ask(typeUrl: string, names: readonly string[]): void {
    const before = this.#asked.get(typeUrl);
    if (before?.join() === names.join()) return;
    const dropped = before?.filter((name) => !names.includes(name)) ?? [];
    this.#asked.set(typeUrl, names);
    for (const name of dropped) this.held.get(typeUrl)?.delete(name);
    this.#request(typeUrl, { subscribe: names.filter((name) => !before?.includes(name)), unsubscribe: dropped });
  }

  #request(typeUrl: string, { subscribe = [], unsubscribe = [], nonce = "" }: Said): void {
    const node = this.#named ? {} : { node: NODE };
    this.#named = true;
    const bytes =
      this.#variant === "delta"
        ? toBinary(
            DeltaDiscoveryRequestSchema,
            create(DeltaDiscoveryRequestSchema, {
              ...{ ...node, typeUrl, responseNonce: nonce },
              ...{ resourceNamesSubscribe: [...subscribe], resourceNamesUnsubscribe: [...unsubscribe] },
            }),
          )
        : toBinary(
            DiscoveryRequestSchema,
            create(DiscoveryRequestSchema, {
              ...{ ...node, typeUrl, resourceNames: [...(this.#asked.get(typeUrl) ?? [])] },
              responseNonce: nonce || (this.#nonces.get(typeUrl) ?? ""),
            }),
          );
    this.#events.message(bytes);
  }

  #take(bytes: Uint8Array): void {
    const response =
      this.#variant === "delta" ? fromBinary(DeltaDiscoveryResponseSchema, bytes) : fromBinary(DiscoveryResponseSchema, bytes);
    const held = this.held.get(response.typeUrl) ?? new Map<string, string>();
    if (response.$typeName === "envoy.service.discovery.v3.DiscoveryResponse" && WHOLE.includes(response.typeUrl)) held.clear();
    for (const one of response.resources) {
      const any = one.$typeName === "google.protobuf.Any" ? one : one.resource;
      if (any !== undefined) held.set(nameIn(any.value), Buffer.from(any.value).toString("base64"));
    }
    if ("removedResources" in response) for (const name of response.removedResources) held.delete(name);
    this.#nonces.set(response.typeUrl, response.nonce);
    this.#request(response.typeUrl, { nonce: response.nonce });
  }
}

/** All four types have their name first. */
function nameIn(body: Uint8Array): string {
  const reader = new BinaryReader(body);
  const [field] = reader.tag();
  if (field !== 1) throw new Error(`field ${field} stands first`);
  return reader.string();
}

function serve(mesh: TestMesh): { readonly server: XdsServer; settle(): Promise<void> } {
  const clock = manualClock();
  const viewOf = (): ReturnType<TestMesh["world"]["view"]> => {
    const facts = readNode(NODE);
    if ("refused" in facts) throw new Error(facts.refused);
    return mesh.world.view(facts);
  };
  const server = createXdsServer({ providers: mesh.world.providers, viewOf, clock, log: silentLog });
  const settle = async (): Promise<void> => {
    for (let turn = 0; turn < 12; turn += 1) {
      await new Promise((resolve) => setImmediate(resolve));
      await server.idle();
      clock.advance(1_000); // Removals wait for what may refer to them, but not for ever.
    }
  };
  return { server, settle };
}

it("a delta stream and one of whole states end with the same bytes, those that are offered", async () => {
  const steps = fc.array(randomDocs(WRITER), { minLength: 1, maxLength: 4 });
  await holds(
    fc.asyncProperty(steps, async (states) => {
      const mesh = meshOf({ documents: [], nodes: [{ name: "web", node: NODE }] });
      const { server, settle } = serve(mesh);
      const clients = [new Client(server, "delta"), new Client(server, "sotw")];
      let before: readonly Doc[] = [];
      for (const docs of states) {
        const kept = new Set(docs.map(keyOf));
        mesh.change({ remove: before.map(keyOf).filter((key) => !kept.has(key)), put: textOf(docs) });
        before = docs;
        const offered = await offeredBy(mesh);
        server.push("test");
        for (const client of clients)
          for (const [typeUrl, resources] of offered) client.ask(typeUrl, WHOLE.includes(typeUrl) ? [] : [...resources.keys()].sort());
        await settle();
        for (const [typeUrl, resources] of offered)
          for (const { held } of clients) expect(sorted(held.get(typeUrl) ?? new Map())).toEqual(sorted(resources));
      }
    }),
    { numRuns: 40 },
  );
});

const sorted = (map: ReadonlyMap<string, string>): readonly (readonly [string, string])[] => [...map].sort(([a], [b]) => (a < b ? -1 : 1));

async function offeredBy(mesh: TestMesh): Promise<ReadonlyMap<string, ReadonlyMap<string, string>>> {
  const [proxy] = mesh.proxies;
  if (proxy === undefined) throw new Error("there is no proxy");
  const all = await mesh.resources(proxy);
  return new Map(
    [...WHOLE, ...NAMED].map((typeUrl) => {
      const resources = [...(all.get(typeUrl)?.resources.values() ?? [])];
      return [typeUrl, new Map(resources.map(({ name, body }) => [name, Buffer.from(body).toString("base64")]))];
    }),
  );
}
