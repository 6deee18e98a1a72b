import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { NodeSchema } from "../src/gen/envoy/config/core/v3/base_pb.js";
import { DELTA_METHOD } from "../src/wire/grpc-server.ts";
import { CLUSTER_TYPE, ENDPOINT_TYPE, LISTENER_TYPE, ROUTE_TYPE, VIRTUAL_HOST_TYPE } from "../src/wire/type-urls.ts";
import { discoveryRequest, type ResponseReader, type SeenResponse, subscription } from "./discovery-wire.ts";
import { GrpcStream, type SecureCall } from "./grpc-stream.ts";
import type { SceneProxy } from "./scene.ts";

/** What clients share, so that a hundred of one kind cost little more than one. */
export interface ClientDeps {
  readonly port: number;
  /** Bytes that may be on their way unread; Envoy's unless said otherwise. */
  readonly window?: number;
  /** How each proxy connects over TLS; in plaintext where left out. */
  readonly secure?: (proxy: SceneProxy) => SecureCall;
  readonly reader: ResponseReader;
  readonly now: () => number;
  /** A response came; called after the client has taken it in and answered. */
  received(client: Client, response: SeenResponse, at: number): void;
  lost(client: Client, reason: string): void;
}

/** Resources received since the last `reset`, by type. */
export interface Tally {
  messages: number;
  bytes: number;
  readonly resources: Map<string, number>;
}

/**
 * Asks for configuration as Envoy does on a delta stream: all clusters, their assignments, all listeners once the clusters have endpoints, the
 * route tables those name, and all virtual hosts once a table leaves its hosts to discovery. Acknowledges everything and keeps nothing but names.
 */
export class Client {
  readonly proxy: SceneProxy;
  readonly #deps: ClientDeps;
  readonly #stream: GrpcStream;
  readonly #asked = new Map<string, Set<string>>();
  /** Names asked for that have not come yet. */
  readonly #missing = new Map<string, Set<string>>();
  #tally: Tally = newTally();
  #listenersCame = false;
  /** When the proxy had all it needs to serve. */
  readyAt: number | undefined;

  constructor(proxy: SceneProxy, deps: ClientDeps) {
    this.proxy = proxy;
    this.#deps = deps;
    this.#stream = new GrpcStream({
      port: deps.port,
      ...(deps.window !== undefined && { window: deps.window }),
      ...(deps.secure !== undefined && { secure: deps.secure(proxy) }),
      path: DELTA_METHOD,
      message: (bytes) => this.#take(bytes),
      ended: (reason) => deps.lost(this, reason),
    });
    this.#stream.send(discoveryRequest({ typeUrl: CLUSTER_TYPE, node: toBinary(NodeSchema, create(NodeSchema, nodeOf(proxy))) }));
  }

  get tally(): Readonly<Tally> {
    return this.#tally;
  }

  /** Names asked for of a type. */
  asked(typeUrl: string): number {
    return this.#asked.get(typeUrl)?.size ?? 0;
  }

  reset(): void {
    this.#tally = newTally();
  }

  /** Reads no more. */
  stall(): void {
    this.#stream.stall();
  }

  close(): void {
    this.#stream.close();
  }

  #take(message: Buffer): void {
    const at = this.#deps.now();
    const response = this.#deps.reader.read(message);
    const { typeUrl, nonce, resources } = response;
    this.#stream.send(discoveryRequest({ typeUrl, nonce }));
    this.#tally.messages += 1;
    this.#tally.bytes += message.length;
    this.#tally.resources.set(typeUrl, (this.#tally.resources.get(typeUrl) ?? 0) + resources.length);
    const missing = this.#missing.get(typeUrl);
    if (missing !== undefined && missing.size > 0) for (const { name } of resources) missing.delete(wantedName(typeUrl, name));
    this.#follow(response);
    if (this.readyAt === undefined && this.#listenersCame && this.#has(ROUTE_TYPE) && this.#has(VIRTUAL_HOST_TYPE)) this.readyAt = at;
    this.#deps.received(this, response, at);
  }

  #follow({ typeUrl, resources }: SeenResponse): void {
    const refers = (): readonly string[] => resources.flatMap((resource) => resource.refers);
    if (typeUrl === CLUSTER_TYPE) this.#ask(ENDPOINT_TYPE, refers());
    if (typeUrl === LISTENER_TYPE) {
      this.#listenersCame = true;
      this.#ask(ROUTE_TYPE, refers());
    }
    if (typeUrl === ROUTE_TYPE) this.#awaitHosts(refers());
    const clustersWarm = (typeUrl === CLUSTER_TYPE || typeUrl === ENDPOINT_TYPE) && this.#has(ENDPOINT_TYPE);
    if (clustersWarm && !this.#asked.has(LISTENER_TYPE)) {
      this.#asked.set(LISTENER_TYPE, new Set());
      this.#stream.send(discoveryRequest({ typeUrl: LISTENER_TYPE }));
    }
  }

  #has(typeUrl: string): boolean {
    return (this.#missing.get(typeUrl)?.size ?? 0) === 0;
  }

  /** Hosts are asked for once, without names; those of each of these tables must come. */
  #awaitHosts(tables: readonly string[]): void {
    if (tables.length === 0) return;
    const first = !this.#asked.has(VIRTUAL_HOST_TYPE);
    const asked = this.#asked.get(VIRTUAL_HOST_TYPE) ?? new Set<string>();
    this.#missing.set(
      VIRTUAL_HOST_TYPE,
      new Set([...(this.#missing.get(VIRTUAL_HOST_TYPE) ?? []), ...tables.filter((one) => !asked.has(one))]),
    );
    this.#asked.set(VIRTUAL_HOST_TYPE, new Set([...asked, ...tables]));
    if (first) this.#stream.send(discoveryRequest({ typeUrl: VIRTUAL_HOST_TYPE }));
  }

  #ask(typeUrl: string, names: readonly string[]): void {
    const asked = this.#asked.get(typeUrl) ?? new Set<string>();
    const fresh = names.filter((name) => !asked.has(name));
    if (fresh.length === 0) return;
    const missing = this.#missing.get(typeUrl) ?? new Set<string>();
    for (const name of fresh) {
      asked.add(name);
      missing.add(name);
    }
    this.#asked.set(typeUrl, asked);
    this.#missing.set(typeUrl, missing);
    this.#stream.send(discoveryRequest({ typeUrl, subscribe: subscription(fresh) }));
  }
}

/** What a resource is waited for as: a virtual host stands for its table. */
const wantedName = (typeUrl: string, name: string): string =>
  typeUrl === VIRTUAL_HOST_TYPE ? name.slice(0, Math.max(0, name.lastIndexOf("/"))) : name;

const newTally = (): Tally => ({ messages: 0, bytes: 0, resources: new Map() });

/** How a proxy of a scene describes itself. */
export function nodeOf({ name, namespace, address, app, vhds }: SceneProxy): MessageInitShape<typeof NodeSchema> {
  return {
    id: `sidecar~${address}~${name}.${namespace}~${namespace}.svc.cluster.local`,
    cluster: `${app}.${namespace}`,
    metadata: {
      NAMESPACE: namespace,
      NAME: name,
      LABELS: { app, version: "v1" },
      SERVICE_ACCOUNT: app,
      CLUSTER_ID: "Kubernetes",
      ISTIO_VERSION: "1.32.0",
      INSTANCE_IPS: address,
      ...(vhds && { VHDS: "true" }),
    },
  };
}
