import type { Clock } from "../base/clock.ts";
import { jsonOf, readChunks, type WatchEvent, watchEvents } from "./answer-body.ts";
import type { KubeAccess } from "./kube-access.ts";
import { KubeError } from "./kube-error.ts";
import { createKubeTransport } from "./kube-transport.ts";
import { isKubeObject, type KubePage, type ListHead, ListReader } from "./list-reader.ts";
import { isProtobuf } from "./proto-envelope.ts";
import type { ObjectFields } from "./proto-fields.ts";
import { ProtoListReader } from "./proto-list-reader.ts";
import { type KubeObject, type ResourcePlace, type ResourceType, resourcePath } from "./resource-type.ts";

export interface Selection {
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
  /** Only metadata is sent: enough to compare, and small where the objects are not. */
  readonly metadataOnly?: boolean | undefined;
}

export interface ListOptions extends Selection {
  /** `0`: what the server has in memory, which may be a moment old, in place of what its database says now. */
  readonly resourceVersion?: string | undefined;
  readonly limit?: number | undefined;
  readonly continue?: string | undefined;
  /** What is read of each object; everything but `managedFields` unless told. Only kinds of Kubernetes' own may be told of: those are had in protobuf. */
  readonly fields?: ObjectFields | undefined;
  readonly signal?: AbortSignal;
}

export interface WatchOptions extends Selection {
  readonly resourceVersion: string;
  /** The server ends the watch after this long. */
  readonly timeoutSeconds: number;
  /** A watch on which nothing comes for this long, not even a bookmark, is given up. */
  readonly idleMs: number;
  readonly signal: AbortSignal;
}

export interface WriteOptions {
  readonly fieldManager?: string;
  readonly dryRun?: boolean;
  readonly signal?: AbortSignal;
}

/** What is to become of an object. */
export interface KubePatch extends WriteOptions {
  /** How `body` is meant. `merge`: RFC 7396; `json`: a list of operations; `apply`: server-side apply. */
  readonly as: "merge" | "json" | "apply";
  readonly body: unknown;
  /** Takes fields over from other managers (`apply` only). */
  readonly force?: boolean;
}

export interface DeleteOptions {
  /** Deletes only this version, or this incarnation. */
  readonly preconditions?: { readonly uid?: string; readonly resourceVersion?: string };
  readonly propagation?: "Foreground" | "Background" | "Orphan";
  readonly signal?: AbortSignal;
}

/** Any other request: reviews, discovery, sub-resources that return other kinds. */
export interface RawRequest {
  readonly method?: string;
  /** Below the server's address. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string | undefined>>;
  readonly body?: unknown;
  readonly contentType?: string;
  readonly accept?: string;
  readonly signal?: AbortSignal | undefined;
  readonly timeoutMs?: number;
  /** Asking twice does no harm; so for every GET. */
  readonly repeatable?: boolean;
}

/** An API server. Every method throws `KubeError`, also where the server cannot be reached. */
export interface KubeClient {
  readonly server: string;
  request(request: RawRequest): Promise<unknown>;
  get(type: ResourceType, place: ResourcePlace, signal?: AbortSignal): Promise<KubeObject>;
  list(type: ResourceType, options?: ListOptions): Promise<KubePage>;
  /** Gives away the objects of a list as they come, in place of holding them all. What is thrown may come after some of them. */
  listEach(type: ResourceType, options: ListOptions, take: (object: KubeObject) => void): Promise<ListHead>;
  /** The events of a watch; an empty list when it is open. */
  watch(type: ResourceType, options: WatchOptions): AsyncGenerator<readonly WatchEvent[], void>;
  create(type: ResourceType, object: KubeObject, options?: WriteOptions & ResourcePlace): Promise<KubeObject>;
  /** Replaces an object; with its resourceVersion only where nobody changed it meanwhile. `subresource: "status"` replaces its status alone. */
  update(type: ResourceType, object: KubeObject, options?: WriteOptions & Pick<ResourcePlace, "subresource">): Promise<KubeObject>;
  patch(type: ResourceType, place: ResourcePlace, patch: KubePatch): Promise<KubeObject>;
  delete(type: ResourceType, place: ResourcePlace, options?: DeleteOptions): Promise<void>;
  close(): void;
}

const REQUEST_MS = 30_000;
const PROTOBUF = "application/vnd.kubernetes.protobuf,application/json";
const METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
const METADATA_LIST = METADATA.replace("PartialObjectMetadata", "PartialObjectMetadataList");
const PATCH_TYPES = {
  merge: "application/merge-patch+json",
  json: "application/json-patch+json",
  apply: "application/apply-patch+yaml",
} as const;

/** A client for one API server. It holds no state but connections. */
export function createKubeClient(access: KubeAccess, clock: Clock, userAgent = "istiod"): KubeClient {
  const transport = createKubeTransport(access, clock);
  const base = { "user-agent": userAgent };
  const ask = ({ method = "GET", path, query, body, contentType, accept, signal, timeoutMs, repeatable }: RawRequest) =>
    transport.send({
      method,
      path: `${path}${queryText(query)}`,
      headers: {
        ...base,
        accept: accept ?? "application/json",
        ...(body !== undefined && { "content-type": contentType ?? "application/json" }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      ...(signal !== undefined && { signal }),
      repeatable: repeatable ?? method === "GET",
      timeoutMs: timeoutMs ?? REQUEST_MS,
    });
  const request = async (wanted: RawRequest): Promise<unknown> =>
    jsonOf(await ask(wanted), { clock, idleMs: wanted.timeoutMs ?? REQUEST_MS });
  const listEach: KubeClient["listEach"] = async (type, options, take) => {
    const { namespace, labelSelector, fieldSelector, resourceVersion, limit, continue: from, metadataOnly, fields, signal } = options;
    const query = { labelSelector, fieldSelector, resourceVersion, limit: limit?.toString(), continue: from };
    const path = resourcePath(type, namespace === undefined ? {} : { namespace });
    const accept = metadataOnly === true ? METADATA_LIST : fields === undefined ? undefined : PROTOBUF;
    const answer = await ask({ path, query, ...(accept !== undefined && { accept }), signal });
    const inProtobuf = fields !== undefined && isProtobuf(answer.headers["content-type"]);
    const reader = inProtobuf ? new ProtoListReader(take, fields) : new ListReader(take, fields?.json);
    await readChunks(answer, { clock, idleMs: REQUEST_MS }, (chunk) => reader.add(chunk));
    return reader.end();
  };
  return {
    server: access.server,
    request,
    get: async (type, place, signal) => objectOf(await request({ path: resourcePath(type, place), signal })),
    async list(type, options = {}) {
      const items: KubeObject[] = [];
      const head = await listEach(type, options, (object) => items.push(object));
      return { ...head, items };
    },
    listEach,
    async *watch(type, { namespace, labelSelector, fieldSelector, metadataOnly, resourceVersion, timeoutSeconds, idleMs, signal }) {
      const query = {
        watch: "true",
        allowWatchBookmarks: "true",
        resourceVersion,
        timeoutSeconds: String(timeoutSeconds),
        labelSelector,
        fieldSelector,
      };
      const path = `${resourcePath(type, namespace === undefined ? {} : { namespace })}${queryText(query)}`;
      const headers = { ...base, accept: metadataOnly === true ? METADATA : "application/json" };
      const answer = await transport.send({ method: "GET", path, headers, signal, repeatable: true, timeoutMs: REQUEST_MS });
      if (answer.statusCode !== 200) return void (await jsonOf(answer, { clock, idleMs: REQUEST_MS }));
      yield [];
      yield* watchEvents(answer, { clock, idleMs });
    },
    ...writersOf(request),
    close: transport.close,
  };
}

/** What changes objects. */
function writersOf(request: KubeClient["request"]): Pick<KubeClient, "create" | "update" | "patch" | "delete"> {
  const write = async (wanted: RawRequest): Promise<KubeObject> => objectOf(await request(wanted));
  return {
    create(type, object, options = {}) {
      const place = { namespace: object.metadata.namespace ?? "", ...options };
      return write({ method: "POST", path: resourcePath(type, place), query: writeQuery(options), body: object, signal: options.signal });
    },
    update(type, object, options = {}) {
      const place = { namespace: object.metadata.namespace ?? "", name: object.metadata.name, ...options };
      return write({ method: "PUT", path: resourcePath(type, place), query: writeQuery(options), body: object, signal: options.signal });
    },
    patch: (type, place, patch) =>
      write({
        method: "PATCH",
        path: resourcePath(type, place),
        query: { ...writeQuery(patch), ...(patch.as === "apply" && patch.force === true && { force: "true" }) },
        body: patch.body,
        contentType: PATCH_TYPES[patch.as],
        signal: patch.signal,
      }),
    async delete(type, place, { preconditions, propagation, signal } = {}) {
      const body = {
        kind: "DeleteOptions",
        apiVersion: "v1",
        ...(preconditions !== undefined && { preconditions }),
        ...(propagation !== undefined && { propagationPolicy: propagation }),
      };
      await request({ method: "DELETE", path: resourcePath(type, place), body, signal });
    },
  };
}

const writeQuery = ({ fieldManager, dryRun }: WriteOptions): Readonly<Record<string, string | undefined>> => ({
  fieldManager,
  dryRun: dryRun === true ? "All" : undefined,
});

function queryText(query: Readonly<Record<string, string | undefined>> = {}): string {
  const pairs = Object.entries(query).flatMap(([name, value]) =>
    value === undefined || value === "" ? [] : [`${encodeURIComponent(name)}=${encodeURIComponent(value)}`],
  );
  return pairs.length === 0 ? "" : `?${pairs.join("&")}`;
}

function objectOf(body: unknown): KubeObject {
  if (isKubeObject(body)) return body;
  if (typeof body === "object" && body !== null) return { metadata: { name: "" }, ...body };
  throw new KubeError({ status: 0, reason: "Unreadable", message: "the API server's answer is no object" });
}
