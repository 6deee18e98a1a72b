import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { BinaryReader } from "@bufbuild/protobuf/wire";
import { expect } from "vitest";
import type { Node } from "../../src/gen/envoy/config/core/v3/base_pb.js";
import {
  DeltaDiscoveryRequestSchema,
  DeltaDiscoveryResponseSchema,
  DiscoveryRequestSchema,
  DiscoveryResponseSchema,
} from "../../src/gen/envoy/service/discovery/v3/discovery_pb.js";
import type { DiscoveryStreamEvents, DiscoveryVariant } from "../../src/wire/discovery-stream.ts";
import { CLUSTER_TYPE, LISTENER_TYPE, NAME_TABLE_TYPE, ROUTE_TYPE, VIRTUAL_HOST_TYPE } from "../../src/wire/type-urls.ts";
import type { XdsServer } from "../../src/xds/server.ts";

/** Of these all are wanted; the others are asked for by name. */
export const WHOLE: readonly string[] = [CLUSTER_TYPE, LISTENER_TYPE, NAME_TABLE_TYPE, VIRTUAL_HOST_TYPE];

interface Said {
  readonly subscribe?: readonly string[];
  readonly unsubscribe?: readonly string[];
  readonly nonce?: string;
}

/** Holds what the protocol says it holds, by type and name, as bytes. */
export class ProtocolClient {
  readonly held = new Map<string, Map<string, Uint8Array>>();
  readonly #variant: DiscoveryVariant;
  readonly #node: Node;
  readonly #events: DiscoveryStreamEvents;
  readonly #asked = new Map<string, readonly string[]>();
  readonly #nonces = new Map<string, string>();
  #named = false;

  constructor(server: XdsServer, variant: DiscoveryVariant, node: Node) {
    this.#variant = variant;
    this.#node = node;
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
    for (const name of dropped) this.#drop(typeUrl, name);
    this.#request(typeUrl, { subscribe: names.filter((name) => !before?.includes(name)), unsubscribe: dropped });
  }

  #heldOf(typeUrl: string): Map<string, Uint8Array> {
    const held = this.held.get(typeUrl) ?? new Map<string, Uint8Array>();
    this.held.set(typeUrl, held);
    return held;
  }

  /** Hosts are kept with their table, also when it changes: one that goes, or comes anew, has none. */
  #drop(typeUrl: string, name: string): void {
    this.#heldOf(typeUrl).delete(name);
    if (typeUrl !== ROUTE_TYPE) return;
    const hosts = this.#heldOf(VIRTUAL_HOST_TYPE);
    for (const host of [...hosts.keys()].filter((one) => one.startsWith(`${name}/`))) hosts.delete(host);
  }

  /** What was on its way when it was let go of is passed over, as Envoy does. */
  #wants(typeUrl: string, name: string): boolean {
    if (typeUrl === VIRTUAL_HOST_TYPE) return this.#asked.get(ROUTE_TYPE)?.includes(name.slice(0, name.lastIndexOf("/"))) === true;
    return WHOLE.includes(typeUrl) || this.#asked.get(typeUrl)?.includes(name) === true;
  }

  #request(typeUrl: string, { subscribe = [], unsubscribe = [], nonce = "" }: Said): void {
    const node = this.#named ? {} : { node: this.#node };
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
    const { typeUrl, nonce } = response;
    const held = this.#heldOf(typeUrl);
    if (response.$typeName === "envoy.service.discovery.v3.DiscoveryResponse" && WHOLE.includes(typeUrl)) held.clear();
    for (const one of response.resources) {
      const any = one.$typeName === "google.protobuf.Any" ? one : one.resource;
      if (any === undefined) continue;
      const name = typeUrl === NAME_TABLE_TYPE ? "" : nameIn(any.value);
      if (one.$typeName === "envoy.service.discovery.v3.Resource") expect(one.name).toBe(name);
      if (!this.#wants(typeUrl, name)) continue;
      if (!held.has(name)) this.#drop(typeUrl, name);
      held.set(name, any.value);
    }
    if ("removedResources" in response) for (const name of response.removedResources) this.#drop(typeUrl, name);
    this.#nonces.set(typeUrl, nonce);
    this.#request(typeUrl, { nonce });
  }
}

/** All types but that of names have their name first. */
function nameIn(body: Uint8Array): string {
  const reader = new BinaryReader(body);
  const [field] = reader.tag();
  if (field !== 1) throw new Error(`field ${field} stands first`);
  return reader.string();
}
