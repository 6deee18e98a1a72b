import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { NodeSchema } from "../src/gen/envoy/config/core/v3/base_pb.js";
import { DELTA_METHOD } from "../src/wire/grpc-server.ts";
import { discoveryRequest } from "./discovery-wire.ts";
import { GrpcStream, type SecureCall } from "./grpc-stream.ts";
import type { Progress } from "./progress.ts";
import { ResponseWalker } from "./response-walker.ts";
import type { SceneProxy } from "./scene.ts";
import type { SeenResources, SeenResponse } from "./seen-resources.ts";

/** What clients share, so that a hundred of one kind cost little more than one. */
export interface ClientDeps {
  readonly port: number;
  /** Bytes that may be on their way unread; Envoy's unless said otherwise. */
  readonly window?: number;
  /** How each proxy connects over TLS; in plaintext where left out. */
  readonly secure?: (proxy: SceneProxy) => SecureCall;
  readonly seen: SeenResources;
  /** Where all begin, and where this one is if it has been here before. */
  readonly begin: Progress;
  readonly now: () => number;
  /** A response came; called after the client has taken it in and answered. */
  received(client: Client, response: SeenResponse, at: number): void;
  /** The proxy has all it needs. */
  ready?(client: Client): void;
  lost(client: Client, reason: string): void;
}

/** What was received since the last `reset`; resources by type. */
export interface Tally {
  messages: number;
  bytes: number;
  readonly resources: Map<string, number>;
}

/**
 * One proxy on a delta stream of its own. It acknowledges everything and keeps nothing but where it is: what it asks for next is `Progress`. One that comes back
 * (`begin` is where it was) says what it holds, as Envoy does that has lost its stream.
 */
export class Client {
  readonly proxy: SceneProxy;
  readonly #deps: ClientDeps;
  readonly #stream: GrpcStream;
  #progress: Progress;
  #tally: Tally = newTally();
  /** When the proxy had all it needs to serve. */
  readyAt: number | undefined;
  /** When the server took the call, and when it first answered. */
  openedAt: number | undefined;
  answeredAt: number | undefined;

  constructor(proxy: SceneProxy, deps: ClientDeps) {
    this.proxy = proxy;
    this.#deps = deps;
    this.#progress = deps.begin;
    const walker = new ResponseWalker(deps.seen, { message: (response, nonce, bytes) => this.#take(response, nonce, bytes) });
    this.#stream = new GrpcStream({
      port: deps.port,
      ...(deps.window !== undefined && { window: deps.window }),
      ...(deps.secure !== undefined && { secure: deps.secure(proxy) }),
      path: DELTA_METHOD,
      opened: () => {
        this.openedAt = deps.now();
      },
      content: (bytes) => walker.take(bytes),
      ended: (reason) => deps.lost(this, reason),
    });
    const node = toBinary(NodeSchema, create(NodeSchema, nodeOf(proxy)));
    deps.begin.returning.forEach((request, at) => {
      this.#stream.send(discoveryRequest(at === 0 ? { ...request, node } : request));
    });
  }

  get tally(): Readonly<Tally> {
    return this.#tally;
  }

  /** Where it is: where one that takes its place may go on. */
  get progress(): Progress {
    return this.#progress;
  }

  /** Names asked for of a type. */
  asked(typeUrl: string): number {
    return this.#progress.asked(typeUrl);
  }

  reset(): void {
    this.#tally = newTally();
  }

  /** Reads no more. */
  stall(): void {
    this.#stream.stall();
  }

  /** Takes some bytes more from the network, although it reads no more. */
  trickle(bytes: number): void {
    this.#stream.trickle(bytes);
  }

  close(): void {
    this.#stream.close();
  }

  #take(response: SeenResponse, nonce: string, bytes: number): void {
    const at = this.#deps.now();
    const { typeUrl, resources } = response;
    this.#stream.send(discoveryRequest({ typeUrl, nonce }));
    this.answeredAt ??= at;
    this.#tally.messages += 1;
    this.#tally.bytes += bytes;
    this.#tally.resources.set(typeUrl, (this.#tally.resources.get(typeUrl) ?? 0) + resources.length);
    this.#progress = this.#progress.after(response);
    for (const request of this.#progress.requests) this.#stream.send(request);
    if (this.readyAt === undefined && this.#progress.ready) {
      this.readyAt = at;
      this.#deps.ready?.(this);
    }
    this.#deps.received(this, response, at);
  }
}

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
