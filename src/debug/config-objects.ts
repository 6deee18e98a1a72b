import type { JsonValue, Message, Registry } from "@bufbuild/protobuf";
import { type ConfigObject, formatOrigin } from "../config/object.ts";
import type { ObjectStatus, StoredObject } from "../config/store/store-types.ts";
import { messageJson } from "../wire/json.ts";
import type { ConfigOrigin, ConfigRecord } from "./api-types.ts";
import { isoTime } from "./object-origin.ts";

export interface ConfigFilter {
  /** Kind, in any case; undefined means all. */
  readonly kind: string | undefined;
  readonly namespace: string | undefined;
}

/** Everything in force in Kubernetes' shape (`/debug/configz`), with its origin and whether it is a last good version. Secrets show their keys only. */
export function configObjects(stored: readonly StoredObject[], filter: ConfigFilter, registry: Registry): readonly ConfigRecord[] {
  const kind = filter.kind?.toLowerCase();
  return stored
    .filter(({ object }) => kind === undefined || object.kind.toLowerCase() === kind)
    .filter(({ object }) => filter.namespace === undefined || object.namespace === filter.namespace)
    .map(({ object, status }) => configRecord(object, status, registry));
}

function configRecord(object: ConfigObject, status: ObjectStatus, registry: Registry): ConfigRecord {
  return {
    apiVersion: object.group === "" ? object.version : `${object.group}/${object.version}`,
    kind: object.kind,
    metadata: {
      name: object.name,
      ...(object.namespace !== "" && { namespace: object.namespace }),
      ...(Object.keys(object.labels).length > 0 && { labels: object.labels }),
      ...(Object.keys(object.annotations).length > 0 && { annotations: annotationsOf(object) }),
      ...(object.createdAt > 0 && { creationTimestamp: isoTime(object.createdAt) }),
      ...(object.generation > 0 && { generation: object.generation }),
    },
    ...contentOf(object, registry),
    origin: originOf(status),
  };
}

const originOf = ({ origin, source, state, staleSince }: ObjectStatus): ConfigOrigin => ({
  source: source ?? "",
  ...(origin?.file !== undefined && { at: formatOrigin(origin) }),
  ...(state === "stale" && { stale: true as const }),
  ...(staleSince !== undefined && { staleSince: isoTime(staleSince) }),
});

/** Where `kubectl apply` keeps a copy of the whole object, secrets and all. */
const LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";

function annotationsOf({ kind, annotations }: ConfigObject): Readonly<Record<string, string>> {
  return kind === "Secret" && LAST_APPLIED in annotations ? { ...annotations, [LAST_APPLIED]: REDACTED } : annotations;
}

const REDACTED = "[redacted]";

function contentOf(object: ConfigObject, registry: Registry): Readonly<Record<string, unknown>> {
  if (object.kind === "Secret") return redacted(object.spec);
  if (isMessage(object.spec)) return { spec: messageContent(object.spec, registry) };
  return KINDS_WITH_SPEC.has(object.kind) ? { spec: object.spec } : { ...(object.spec as object) };
}

function messageContent(message: Message, registry: Registry): JsonValue {
  const schema = registry.getMessage(message.$typeName);
  return schema === undefined ? {} : messageJson(registry, schema, message);
}

const isMessage = (spec: unknown): spec is Message => typeof spec === "object" && spec !== null && "$typeName" in spec;

/** The keys of a Secret and nothing of their content. What is not a map of keys is left out whole. */
function redacted(spec: unknown): Readonly<Record<string, unknown>> {
  if (typeof spec !== "object" || spec === null) return {};
  const { type, data, stringData } = spec as Readonly<Record<string, unknown>>;
  return { ...(typeof type === "string" && { type }), ...keysOf("data", data), ...keysOf("stringData", stringData) };
}

const keysOf = (field: string, map: unknown): Readonly<Record<string, unknown>> =>
  typeof map === "object" && map !== null ? { [field]: Object.fromEntries(Object.keys(map).map((key) => [key, REDACTED])) } : {};
