/** A resource of a response, as far as a measuring client needs to know it. Equal versions are one object. */
export interface SeenResource {
  readonly name: string;
  /** Names of resources of the next type that it makes a proxy ask for. */
  readonly refers: readonly string[];
  /** The marker that was looked for when it was first seen is in it. */
  readonly marker: string | undefined;
}

export interface SeenResponse {
  readonly typeUrl: string;
  readonly nonce: string;
  readonly resources: readonly SeenResource[];
}

export interface RequestParts {
  readonly typeUrl: string;
  readonly node?: Uint8Array;
  readonly subscribe?: Buffer;
  readonly nonce?: string;
}

const CLUSTER = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
const LISTENER = "type.googleapis.com/envoy.config.listener.v3.Listener";
const ROUTE = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration";
const EDS_CLUSTER = 3;

/**
 * Reads delta responses by walking their bytes. Hundreds of proxies are sent the same resources: each version is looked into once, so that the
 * client costs a fraction of the server it measures.
 */
export class ResponseReader {
  readonly #seen = new Map<string, Map<string, SeenResource>>();
  /** What servers that give resources no version sent last, by type and name. */
  readonly #unversioned = new Map<string, { readonly any: Buffer; readonly seen: SeenResource }>();
  #marker: string | undefined;

  /** Resources that are new from now on are searched for this text. */
  lookFor(marker: string | undefined): void {
    this.#marker = marker;
  }

  read(message: Buffer): SeenResponse {
    let typeUrl = "";
    let nonce = "";
    const spans: [start: number, end: number][] = [];
    eachField(message, [0, message.length], (field, start, end) => {
      if (field === 4) typeUrl = message.toString("latin1", start, end);
      else if (field === 5) nonce = message.toString("latin1", start, end);
      else if (field === 2) spans.push([start, end]);
    });
    return { typeUrl, nonce, resources: spans.map(([start, end]) => this.#resource(typeUrl, message, [start, end])) };
  }

  #resource(typeUrl: string, message: Buffer, [start, end]: [number, number]): SeenResource {
    let version = "";
    let [nameStart, nameEnd, anyStart, anyEnd] = [0, 0, 0, 0];
    eachField(message, [start, end], (field, from, to) => {
      if (field === 1) version = message.toString("latin1", from, to);
      else if (field === 3) [nameStart, nameEnd] = [from, to];
      else if (field === 2) [anyStart, anyEnd] = [from, to];
    });
    const name = (): string => message.toString("utf8", nameStart, nameEnd);
    const any = message.subarray(anyStart, anyEnd);
    if (version === "") return this.#unversionedResource(typeUrl, name(), any);
    const versions = this.#seen.get(typeUrl) ?? new Map<string, SeenResource>();
    this.#seen.set(typeUrl, versions);
    const known = versions.get(version);
    if (known !== undefined) return known;
    const seen = this.#look(typeUrl, name(), anyValue(any));
    versions.set(version, seen);
    return seen;
  }

  #unversionedResource(typeUrl: string, name: string, any: Buffer): SeenResource {
    const key = `${typeUrl} ${name}`;
    const known = this.#unversioned.get(key);
    if (known?.any.equals(any) === true) return known.seen;
    const seen = this.#look(typeUrl, name, anyValue(any));
    this.#unversioned.set(key, { any: Buffer.from(any), seen });
    return seen;
  }

  #look(typeUrl: string, name: string, body: Buffer): SeenResource {
    const marker = this.#marker !== undefined && body.includes(this.#marker, 0, "latin1") ? this.#marker : undefined;
    return { name, refers: referencesOf(typeUrl, body), marker };
  }
}

/** Encodes names as the `resource_names_subscribe` of a request; worth keeping, since many proxies ask for the same. */
export const subscription = (names: readonly string[]): Buffer => Buffer.concat(names.map((name) => field(3, Buffer.from(name))));

/** Encodes a delta request. */
export function discoveryRequest({ typeUrl, node, subscribe, nonce }: RequestParts): Buffer {
  const parts = [field(2, Buffer.from(typeUrl, "latin1"))];
  if (node !== undefined) parts.push(field(1, node));
  if (subscribe !== undefined) parts.push(subscribe);
  if (nonce !== undefined) parts.push(field(6, Buffer.from(nonce, "latin1")));
  return Buffer.concat(parts);
}

/**
 * What a resource makes Envoy ask for next: a cluster its assignment, a listener the route tables of its HTTP filters; a table that leaves its
 * hosts to discovery (`vhds`) those of its own name.
 */
export function referencesOf(typeUrl: string, body: Buffer): readonly string[] {
  if (typeUrl === CLUSTER) return assignmentOf(body);
  if (typeUrl === ROUTE) return inside(body, [9]).length > 0 ? texts(body, [1]).slice(0, 1) : [];
  return typeUrl === LISTENER ? [...new Set(tablesOf(body))] : [];
}

function assignmentOf(cluster: Buffer): readonly string[] {
  let eds = false;
  eachField(cluster, [0, cluster.length], (number, value, end) => {
    if (number === 2 && end < 0) eds = value === EDS_CLUSTER;
  });
  const [name = ""] = texts(cluster, [1]);
  const [assignment = name] = texts(cluster, [3, 2]);
  return eds ? [assignment] : [];
}

/** `filter_chains` and `default_filter_chain` → `filters` → `typed_config` → `value` → `rds` → `route_config_name`. */
function tablesOf(listener: Buffer): readonly string[] {
  return [3, 25].flatMap((chain) =>
    inside(listener, [chain, 3, 4])
      .filter(isHttpManager)
      .flatMap((any) => texts(anyValue(any), [3, 2])),
  );
}

const isHttpManager = (any: Buffer): boolean => texts(any, [1])[0]?.endsWith(".HttpConnectionManager") === true;

const anyValue = (any: Buffer): Buffer => inside(any, [2])[0] ?? Buffer.alloc(0);

const texts = (bytes: Buffer, path: readonly number[]): readonly string[] => inside(bytes, path).map((part) => part.toString("utf8"));

/** The length-delimited fields found by following a path of field numbers. */
function inside(bytes: Buffer, [first, ...rest]: readonly number[]): readonly Buffer[] {
  const found: Buffer[] = [];
  eachField(bytes, [0, bytes.length], (number, start, end) => {
    if (number === first && end >= 0) found.push(bytes.subarray(start, end));
  });
  return rest.length === 0 ? found : found.flatMap((part) => inside(part, rest));
}

/** Calls back for each field with its span, or with its value and -1 where it is a varint. Fixed-width fields are passed over. */
function eachField(bytes: Buffer, [start, end]: readonly [number, number], visit: (field: number, from: number, to: number) => void): void {
  let at = start;
  const varint = (): number => {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = bytes[at++] ?? 0;
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
  };
  while (at < end) {
    const tag = varint();
    const [number, wireType] = [tag >>> 3, tag & 7];
    if (wireType === 2) {
      const length = varint();
      visit(number, at, at + length);
      at += length;
    } else if (wireType === 0) visit(number, varint(), -1);
    else at += wireType === 1 ? 8 : 4;
  }
}

function field(number: number, bytes: Uint8Array): Buffer {
  const head = [(number << 3) | 2];
  let rest = bytes.length;
  for (; rest >= 128; rest = Math.floor(rest / 128)) head.push((rest % 128) | 128);
  return Buffer.concat([Buffer.from([...head, rest]), bytes]);
}
