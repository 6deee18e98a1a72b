export interface RequestParts {
  readonly typeUrl: string;
  readonly node?: Uint8Array;
  readonly subscribe?: Buffer;
  readonly held?: Buffer;
  readonly nonce?: string;
}

const CLUSTER = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
const LISTENER = "type.googleapis.com/envoy.config.listener.v3.Listener";
const ROUTE = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration";
const EDS_CLUSTER = 3;

/** Encodes names as the `resource_names_subscribe` of a request; worth keeping, since many proxies ask for the same. */
export const subscription = (names: readonly string[]): Buffer => Buffer.concat(names.map((name) => field(3, Buffer.from(name))));

/** Encodes names and versions as the `initial_resource_versions` of a request; worth keeping for the same reason. */
export const versionsHeld = (held: Iterable<readonly [name: string, version: string]>): Buffer =>
  Buffer.concat(
    Array.from(held, ([name, version]) => field(5, Buffer.concat([field(1, Buffer.from(name)), field(2, Buffer.from(version, "latin1"))]))),
  );

/** Encodes a delta request. */
export function discoveryRequest({ typeUrl, node, subscribe, held, nonce }: RequestParts): Buffer {
  const parts = [field(2, Buffer.from(typeUrl, "latin1"))];
  if (node !== undefined) parts.push(field(1, node));
  if (subscribe !== undefined) parts.push(subscribe);
  if (held !== undefined) parts.push(held);
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

/** The message inside an `Any`, and the type it says it is of. */
export const anyValue = (any: Buffer): Buffer => inside(any, [2])[0] ?? Buffer.alloc(0);

export const anyType = (any: Buffer): string => texts(any, [1])[0] ?? "";

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
export function eachField(
  bytes: Buffer,
  [start, end]: readonly [number, number],
  visit: (field: number, from: number, to: number) => void,
): void {
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
