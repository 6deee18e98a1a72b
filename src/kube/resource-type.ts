/** A kind of object as the API server serves it. */
export interface ResourceType {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly namespaced: boolean;
}

/** Which object, or part of one, or which collection. */
export interface ResourcePlace {
  readonly namespace?: string;
  readonly name?: string;
  /** `status`, `token` … */
  readonly subresource?: string;
}

/** Metadata of an object, as far as everybody reads it. */
export interface KubeMetadata {
  readonly name: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly generation?: number;
  readonly creationTimestamp?: string;
  readonly deletionTimestamp?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly [field: string]: unknown;
}

/** An object of an API server; what it holds besides metadata depends on its kind. */
export interface KubeObject {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: KubeMetadata;
  readonly [field: string]: unknown;
}

/** `apiVersion` of objects of a type. */
export const apiVersionOf = ({ group, version }: Pick<ResourceType, "group" | "version">): string =>
  group === "" ? version : `${group}/${version}`;

/** The path of a collection, an object or a sub-resource below the server's address. */
export function resourcePath(type: ResourceType, { namespace, name, subresource }: ResourcePlace = {}): string {
  const steps = [type.group === "" ? "api" : "apis", ...(type.group === "" ? [] : [type.group]), type.version];
  if (type.namespaced && namespace !== undefined && namespace !== "") steps.push("namespaces", namespace);
  steps.push(type.plural);
  if (name !== undefined) steps.push(name);
  if (subresource !== undefined) steps.push(subresource);
  return `/${steps.map(encodeURIComponent).join("/")}`;
}

/** Identity of an object among those of its type: `namespace/name`, or `/name` where it is in none. */
export const placeKey = ({ namespace, name }: Pick<KubeMetadata, "namespace" | "name">): string => `${namespace ?? ""}/${name}`;
