import { parseAllDocuments } from "yaml";
import { eventually } from "../support/wait.ts";
import { type ApiAccess, type ApiConnection, connectToApi } from "./api-connection.ts";
import { KubeApiError, type KubeObject } from "./kube-object.ts";
import { discoverResources, pathOf, type Resources } from "./resources.ts";
import { rightsInForce } from "./rights-in-force.ts";

/**
 * The API as one user. A resource is named as for kubectl (`Pod`, `pods`, `deployments.apps`, `Gateway.networking.istio.io`), an object by
 * `namespace/name`, or by `name` where it has no namespace.
 */
export interface KubeClient {
  readonly api: ApiConnection;
  readonly resources: Resources;
  /** Undefined where there is none. */
  get<T extends KubeObject = KubeObject>(resource: string, name: string): Promise<T | undefined>;
  list<T extends KubeObject = KubeObject>(resource: string, options?: ListOptions): Promise<readonly T[]>;
  create(object: KubeObject): Promise<KubeObject>;
  /** Server-side apply of all documents, in order, as `kubectl apply --server-side` does. */
  apply(yaml: string, options?: ApplyOptions): Promise<Applied>;
  patch(resource: string, name: string, patch: Patch): Promise<KubeObject>;
  /** Absence is no error. */
  delete(resource: string, name: string, options?: { readonly gracePeriodSeconds?: number }): Promise<void>;
  close(): void;
}

/** Of all objects, those in one namespace, and those that selectors choose. */
export interface ListOptions {
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
}

/** As the flags of kubectl with these names. */
export interface ApplyOptions {
  /** For objects that name none. */
  readonly namespace?: string;
  readonly fieldManager?: string;
  /** Takes over fields that somebody else set. */
  readonly force?: boolean;
  readonly dryRun?: boolean;
}

/** What the API server made of the documents, and what it warns of. */
export interface Applied {
  readonly objects: readonly KubeObject[];
  readonly warnings: readonly string[];
}

/** A merge patch unless told. */
export interface Patch {
  readonly type?: "merge" | "json" | "strategic";
  readonly body: unknown;
  /** E.g. `status` or `scale`. */
  readonly subresource?: string;
}

const PATCH_TYPES = {
  merge: "application/merge-patch+json",
  json: "application/json-patch+json",
  strategic: "application/strategic-merge-patch+json",
};

/** Makes a client; kinds are looked up at the API server when first named. */
export function createKubeClient(access: ApiAccess): KubeClient {
  const api = connectToApi(access);
  const resources = discoverResources(api);
  const locate = async (resource: string, name: string): Promise<string> => {
    const [last = "", namespace] = name.split("/").reverse();
    const found = await resources.named(resource);
    if (found.namespaced && namespace === undefined) throw new Error(`a ${found.kind} has a namespace: say "namespace/${name}"`);
    return `${pathOf(found, namespace)}/${encodeURIComponent(last)}`;
  };
  return {
    api,
    resources,
    async get<T extends KubeObject>(resource: string, name: string): Promise<T | undefined> {
      const path = await locate(resource, name);
      return (await unlessAbsent(api.call({ method: "GET", path })))?.body as T | undefined;
    },
    async list<T extends KubeObject>(
      resource: string,
      { namespace, labelSelector, fieldSelector }: ListOptions = {},
    ): Promise<readonly T[]> {
      const path = pathOf(await resources.named(resource), namespace);
      const { body } = await api.call({ method: "GET", path, query: { labelSelector, fieldSelector } });
      return (body as { readonly items: readonly T[] }).items;
    },
    async create(object) {
      const resource = await resources.of(object.apiVersion, object.kind);
      const path = pathOf(resource, object.metadata.namespace ?? "default");
      return (await api.call({ method: "POST", path, body: object })).body as KubeObject;
    },
    apply: (yaml, options) => applyAll({ api, resources }, yaml, options),
    async patch(resource, name, { type = "merge", body, subresource }) {
      const path = (await locate(resource, name)) + (subresource === undefined ? "" : `/${subresource}`);
      return (await api.call({ method: "PATCH", path, body, contentType: PATCH_TYPES[type] })).body as KubeObject;
    },
    async delete(resource, name, { gracePeriodSeconds } = {}) {
      const path = await locate(resource, name);
      await unlessAbsent(api.call({ method: "DELETE", path, query: { gracePeriodSeconds } }));
    },
    close: () => api.close(),
  };
}

async function applyAll(client: Pick<KubeClient, "api" | "resources">, yaml: string, options: ApplyOptions = {}): Promise<Applied> {
  const objects: KubeObject[] = [];
  const warnings: string[] = [];
  for (const object of objectsIn(yaml)) {
    const { body, warnings: told } = await applyOne(client, object, options);
    objects.push(body as KubeObject);
    warnings.push(...told);
    if (options.dryRun === true) continue;
    if (object.kind === "Namespace") await namespaceUsable(client, object.metadata.name);
    if (object.kind.endsWith("RoleBinding")) await rightsInForce(client.api, object);
  }
  return { objects, warnings };
}

/** The objects of a file as kubectl reads it: documents, lists among them. */
export function objectsIn(yaml: string): readonly KubeObject[] {
  return parseAllDocuments(yaml).flatMap((document) => {
    if ("errors" in document && document.errors[0] !== undefined) throw document.errors[0];
    const object = document.toJS() as (KubeObject & { readonly items?: readonly KubeObject[] }) | null;
    if (object === null) return [];
    return object.kind.endsWith("List") && object.items !== undefined ? object.items : [object];
  });
}

async function applyOne({ api, resources }: Pick<KubeClient, "api" | "resources">, object: KubeObject, options: ApplyOptions) {
  const { namespace = "default", fieldManager = "kubectl", force, dryRun } = options;
  // A CRD just applied takes a moment until its kind is served.
  const resource = await eventually(`${object.kind} is served`, () => resources.of(object.apiVersion, object.kind));
  const path = `${pathOf(resource, object.metadata.namespace ?? namespace)}/${encodeURIComponent(object.metadata.name)}`;
  const query = { fieldManager, force, dryRun: dryRun === true ? "All" : undefined, fieldValidation: "Strict" };
  const call = { method: "PATCH", path, query, body: JSON.stringify(object), contentType: "application/apply-patch+yaml" } as const;
  for (let tries = 1; ; tries += 1) {
    try {
      return await api.call(call);
    } catch (error) {
      if (tries === MOST_TRIES || !isLateWebhook(error)) throw error;
    }
  }
}

const MOST_TRIES = 5;

/** On a busy machine a webhook may be late, which fails the write; whoever applies something does so again. */
const isLateWebhook = (error: unknown): boolean =>
  error instanceof KubeApiError && error.status === 500 && /failed calling webhook.*deadline exceeded/s.test(error.message);

/** Pods are refused in a namespace until the controller manager has given it a service account. Where none runs, nobody waits. */
async function namespaceUsable({ api }: Pick<KubeClient, "api">, namespace: string): Promise<void> {
  const path = (name: string): string => `/api/v1/namespaces/${name}/serviceaccounts/default`;
  const exists = async (name: string): Promise<boolean> =>
    (await unlessAbsent(api.call({ method: "GET", path: path(name) }))) !== undefined;
  if (!(await exists("kube-system"))) return;
  await eventually(`namespace ${namespace} has a service account`, () => exists(namespace));
}

async function unlessAbsent<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof KubeApiError && error.status === 404) return undefined;
    throw error;
  }
}
