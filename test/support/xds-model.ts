import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { NodeSchema } from "../../src/gen/envoy/config/core/v3/base_pb.js";
import {
  DeltaDiscoveryRequestSchema,
  DeltaDiscoveryResponseSchema,
  DiscoveryRequestSchema,
  DiscoveryResponseSchema,
} from "../../src/gen/envoy/service/discovery/v3/discovery_pb.js";
import type { ProxyView } from "../../src/model/proxy.ts";
import type { DiscoveryStream, DiscoveryStreamEvents, DiscoveryVariant } from "../../src/wire/discovery-stream.ts";
import { encodedBytes } from "../../src/wire/encode.ts";
import type { Encoded, FailedResource, ResourceSet } from "../../src/wire/encoded.ts";
import { CLUSTER_TYPE, ENDPOINT_TYPE, LISTENER_TYPE, ROUTE_TYPE, VIRTUAL_HOST_TYPE } from "../../src/wire/type-urls.ts";
import type { ResourceProvider, Wanted } from "../../src/xds/provider.ts";
import type { XdsServer } from "../../src/xds/server.ts";

/** A resource whose body says its own name, so that a state-of-the-world client can tell it too. */
export const resource = (typeUrl: string, name: string, content: string): Encoded =>
  encodedBytes(typeUrl, name, Buffer.from(`${name}=${content}`));

/** A provider over a plain map. Sets are shared by all who want the same, as the engine's are. */
export class MapProvider implements ResourceProvider {
  readonly typeUrl: string;
  readonly #resources = new Map<string, Encoded>();
  readonly #sets = new Map<string, ResourceSet>();
  failed: FailedResource[] = [];
  companion?: NonNullable<ResourceProvider["companion"]>;
  sendAfter?: readonly string[];
  removeAfter?: readonly string[];
  partOf?: string;
  askedBy?: NonNullable<ResourceProvider["askedBy"]>;
  urgent?: boolean;

  constructor(typeUrl: string, options: Partial<ResourceProvider> = {}) {
    this.typeUrl = typeUrl;
    Object.assign(this, options);
  }

  set(name: string, content: string): void {
    this.put(resource(this.typeUrl, name, content));
  }

  put(encoded: Encoded): void {
    if (this.#resources.get(encoded.name)?.version === encoded.version) return;
    this.#resources.set(encoded.name, encoded);
    this.changed();
  }

  delete(name: string): void {
    this.#resources.delete(name);
    this.changed();
  }

  changed(): void {
    this.#sets.clear();
  }

  *prepare(): Iterable<void> {}

  standing(_view: ProxyView, { wildcard, names }: Wanted): ResourceSet | undefined {
    return this.#sets.get(`${wildcard} ${names.id}`);
  }

  offered(view: ProxyView, wanted: Wanted): ResourceSet {
    const key = `${wanted.wildcard} ${wanted.names.id}`;
    const known = this.standing(view, wanted);
    if (known !== undefined) return known;
    const wholeOf = (name: string): string => name.slice(0, Math.max(0, name.lastIndexOf("/")));
    const isWanted = (name: string): boolean =>
      this.partOf === undefined
        ? wanted.wildcard || wanted.names.names.has(name)
        : wanted.wildcard && wanted.names.names.has(wholeOf(name));
    const resources = [...this.#resources].filter(([name]) => isWanted(name));
    const failed = this.failed.filter(({ name }) => isWanted(name));
    const set = { resources: new Map(resources), failed };
    for (const { name } of failed) set.resources.delete(name);
    this.#sets.set(key, set);
    return set;
  }

  provenance(_view: ProxyView, name: string): readonly string[] {
    return [`Fake/ns/${name}`];
  }
}

/** The node of a client that asks for virtual hosts. */
export const HOSTS_NODE = "sidecar~10.0.0.1~hosts.default~default.svc.cluster.local";

/** Providers of Envoy's types, wired as the real ones are. */
export function envoyProviders() {
  const clusters = new MapProvider(CLUSTER_TYPE, {
    companion: { typeUrl: ENDPOINT_TYPE, namesOf: (cluster) => [cluster.name] },
    removeAfter: [LISTENER_TYPE, ROUTE_TYPE, VIRTUAL_HOST_TYPE],
  });
  const endpoints = new MapProvider(ENDPOINT_TYPE, { urgent: true, removeAfter: [CLUSTER_TYPE, LISTENER_TYPE, ROUTE_TYPE] });
  const listeners = new MapProvider(LISTENER_TYPE, { sendAfter: [CLUSTER_TYPE] });
  const routes = new MapProvider(ROUTE_TYPE, { sendAfter: [CLUSTER_TYPE] });
  const hosts = new MapProvider(VIRTUAL_HOST_TYPE, {
    partOf: ROUTE_TYPE,
    askedBy: ({ id }) => id === HOSTS_NODE,
    sendAfter: [CLUSTER_TYPE, ROUTE_TYPE],
  });
  return { clusters, endpoints, listeners, routes, hosts, all: [clusters, endpoints, listeners, routes, hosts] };
}

export const testView = (id: string): ProxyView => ({ id, type: "sidecar", namespace: "default" }) as ProxyView;

/** One response as a test wants to see it. */
export interface Seen {
  readonly typeUrl: string;
  readonly names: readonly string[];
  readonly removed: readonly string[];
  readonly nonce: string;
  readonly version: string;
}

interface Held {
  resources: Map<string, string>;
  wanted: Set<string>;
  wildcard: boolean;
  nonce: string;
  version: string;
}

export interface ModelClientOptions {
  readonly variant: DiscoveryVariant;
  readonly node?: string;
  send(request: Uint8Array): void;
  /** Gives the reason to reject a response, or undefined. */
  judge?(response: Seen, contents: ReadonlyMap<string, string>): string | undefined;
  /** Which resources of a rejected response take effect nevertheless; none by default. Envoy applies the good clusters of a bad response. */
  appliesAnyway?(typeUrl: string, name: string, version: string): boolean;
  /** False: the test answers itself. */
  readonly answers?: boolean;
  /** False: it takes nothing from the network. */
  readonly reads?: boolean;
}

/** A client that does what the protocol says, and remembers all that it was sent. */
export class ModelClient {
  readonly seen: Seen[] = [];
  readonly #options: ModelClientOptions;
  readonly #types = new Map<string, Held>();
  #named = false;

  constructor(options: ModelClientOptions) {
    this.#options = options;
  }

  held(typeUrl: string): ReadonlyMap<string, string> {
    return this.#type(typeUrl).resources;
  }

  wanted(typeUrl: string): ReadonlySet<string> {
    return this.#type(typeUrl).wanted;
  }

  /** Starts a type as Envoy does: `*` for clusters and listeners by naming nothing. */
  subscribe(typeUrl: string, names: readonly string[] = []): void {
    const type = this.#type(typeUrl);
    if (names.length === 0) type.wildcard = true;
    for (const name of names) type.wanted.add(name);
    this.#request(typeUrl, { subscribe: names });
  }

  unsubscribe(typeUrl: string, names: readonly string[]): void {
    const type = this.#type(typeUrl);
    for (const name of names) {
      type.wanted.delete(name);
      if (!type.wildcard) type.resources.delete(name);
    }
    this.#request(typeUrl, { unsubscribe: names });
  }

  /** It lost something that it asked for, and will say so. */
  forget(typeUrl: string, name: string): void {
    this.#type(typeUrl).resources.delete(name);
  }

  /** A new stream for a client that lived on: it says what it has. */
  reconnect(send: (request: Uint8Array) => void, order: readonly string[] = [...this.#types.keys()]): void {
    (this.#options as { send: typeof send }).send = send;
    this.#named = false;
    for (const type of this.#types.values()) type.nonce = "";
    for (const typeUrl of order) {
      const type = this.#type(typeUrl);
      if (type.wildcard || type.wanted.size > 0) this.#request(typeUrl, { subscribe: [...type.wanted], versions: type.resources });
    }
  }

  message(bytes: Uint8Array): void {
    const { seen, contents } = this.#options.variant === "delta" ? readDelta(bytes) : readSotw(bytes);
    this.seen.push(seen);
    const type = this.#type(seen.typeUrl);
    type.nonce = seen.nonce;
    const error = this.#options.judge?.(seen, contents);
    if (error !== undefined) {
      const applies = this.#options.appliesAnyway ?? (() => false);
      for (const [name, version] of contents)
        if ((type.wildcard || type.wanted.has(name)) && applies(seen.typeUrl, name, version)) type.resources.set(name, version);
    } else {
      type.version = seen.version;
      if (this.#options.variant === "sotw" && (seen.typeUrl === CLUSTER_TYPE || seen.typeUrl === LISTENER_TYPE)) type.resources.clear();
      for (const [name, version] of contents) if (type.wildcard || type.wanted.has(name)) type.resources.set(name, version);
      for (const name of seen.removed) type.resources.delete(name);
    }
    if (this.#options.answers !== false) this.answer(seen, error);
  }

  answer(response: Pick<Seen, "typeUrl" | "nonce">, error?: string): void {
    this.#request(response.typeUrl, { nonce: response.nonce, ...(error !== undefined && { error }) });
  }

  #request(
    typeUrl: string,
    what: {
      subscribe?: readonly string[];
      unsubscribe?: readonly string[];
      versions?: ReadonlyMap<string, string>;
      nonce?: string;
      error?: string;
    },
  ): void {
    const type = this.#type(typeUrl);
    const node = this.#named
      ? undefined
      : create(NodeSchema, { id: this.#options.node ?? "sidecar~10.0.0.1~a.default~default.svc.cluster.local" });
    this.#named = true;
    const errorDetail = what.error === undefined ? {} : { errorDetail: { code: 3, message: what.error } };
    if (this.#options.variant === "delta") {
      const request = create(DeltaDiscoveryRequestSchema, {
        typeUrl,
        ...(node !== undefined && { node }),
        resourceNamesSubscribe: [...(what.subscribe ?? [])],
        resourceNamesUnsubscribe: [...(what.unsubscribe ?? [])],
        initialResourceVersions: Object.fromEntries(what.versions ?? []),
        responseNonce: what.nonce ?? "",
        ...errorDetail,
      });
      this.#options.send(toBinary(DeltaDiscoveryRequestSchema, request));
      return;
    }
    const request = create(DiscoveryRequestSchema, {
      typeUrl,
      ...(node !== undefined && { node }),
      resourceNames: [...type.wanted],
      responseNonce: what.nonce ?? type.nonce,
      versionInfo: type.version,
      ...errorDetail,
    });
    this.#options.send(toBinary(DiscoveryRequestSchema, request));
  }

  #type(typeUrl: string): Held {
    const known = this.#types.get(typeUrl);
    if (known !== undefined) return known;
    const type: Held = { resources: new Map(), wanted: new Set(), wildcard: false, nonce: "", version: "" };
    this.#types.set(typeUrl, type);
    return type;
  }
}

interface Read {
  readonly seen: Seen;
  /** Version by name. */
  readonly contents: ReadonlyMap<string, string>;
}

function readDelta(bytes: Uint8Array): Read {
  const response = fromBinary(DeltaDiscoveryResponseSchema, bytes);
  const contents = new Map(response.resources.map((one) => [one.name, one.version]));
  const { typeUrl, nonce } = response;
  return {
    seen: { typeUrl, names: [...contents.keys()], removed: response.removedResources, nonce, version: response.systemVersionInfo },
    contents,
  };
}

function readSotw(bytes: Uint8Array): Read {
  const response = fromBinary(DiscoveryResponseSchema, bytes);
  const contents = new Map(
    response.resources.map((any) => {
      const [name = ""] = Buffer.from(any.value).toString().split("=");
      return [name, encodedBytes(response.typeUrl, name, any.value).version];
    }),
  );
  const { typeUrl, nonce } = response;
  return { seen: { typeUrl, names: [...contents.keys()], removed: [], nonce, version: response.versionInfo }, contents };
}

/** Joins a client and a server in memory. */
export interface Connection {
  readonly client: ModelClient;
  /** Sends a request that the client would put otherwise. */
  say(request: Uint8Array): void;
  /** Set when the server ended the stream. */
  closed: { readonly status: number; readonly reason: string } | undefined;
  /** How many streams the server let know that they are served before it had anything to send. */
  begun: number;
  /** The client goes away without a word. */
  cut(): void;
  /** A new stream for the same client. */
  again(order?: readonly string[], next?: XdsServer): void;
}

export function connect(server: XdsServer, options: Omit<ModelClientOptions, "send">): Connection {
  let events: DiscoveryStreamEvents;
  let at = server;
  const open = (connection: Connection): void => {
    let live = true;
    let heard = false;
    const stream: DiscoveryStream = {
      variant: options.variant,
      peer: { address: "127.0.0.1:1", header: () => undefined, certificate: undefined },
      begin() {
        if (!heard) connection.begun += 1;
        heard = true;
      },
      send(message, flushed) {
        heard = true;
        queueMicrotask(() => {
          if (!live || options.reads === false) return;
          flushed();
          connection.client.message(Buffer.concat(message));
        });
      },
      close(status, reason) {
        connection.closed = { status, reason };
        live = false;
      },
      progress: () => 0,
      pause() {},
      resume() {},
      abort() {
        connection.closed = { status: -1, reason: "aborted" };
        live = false;
      },
    };
    const mine = at.accept(stream);
    events = mine;
    connection.cut = () => {
      live = false;
      mine.ended();
    };
  };
  const connection: Connection = {
    client: new ModelClient({ ...options, send: (request) => events.message(request) }),
    say: (request) => events.message(request),
    closed: undefined,
    begun: 0,
    cut: () => {},
    again(order, next = at) {
      connection.cut();
      at = next;
      open(connection);
      connection.client.reconnect((request) => events.message(request), order);
    },
  };
  open(connection);
  return connection;
}
