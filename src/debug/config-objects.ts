import type { JsonValue, Message, Registry } from "@bufbuild/protobuf";
import type { KindDef } from "../config/kind-def.ts";
import { KINDS } from "../config/kinds/index.ts";
import type { KubernetesSecret } from "../config/kinds/secret/secret.ts";
import { type ConfigObject, formatOrigin } from "../config/object.ts";
import type { ObjectStatus, StoredObject } from "../config/store/store-types.ts";
import { messageJson } from "../wire/json.ts";
import { redacted as withoutSecrets } from "../wire/redact.ts";
import type { ConfigOrigin, ConfigRecord } from "./api-types.ts";
import { isoTime } from "./object-origin.ts";

export interface ConfigFilter {
  /** Kind, plural or short name, in any case; undefined means all. */
  readonly type: string | undefined;
  readonly namespace: string | undefined;
}

const DEFS: ReadonlyMap<string, KindDef> = new Map(KINDS.map((def) => [def.kind, def]));

/** Everything in force in Kubernetes' shape (`/debug/configz`), with its origin and whether it is a last good version. Secrets show their keys only. */
export function configObjects(stored: readonly StoredObject[], filter: ConfigFilter, registry: Registry): Iterable<ConfigRecord> {
  return stored
    .values()
    .filter(({ object }) => filter.type === undefined || isOfType(object, filter.type.toLowerCase()))
    .filter(({ object }) => filter.namespace === undefined || object.namespace === filter.namespace)
    .map(({ object, status }) => configRecord(object, status, registry));
}

function isOfType({ kind }: ConfigObject, type: string): boolean {
  const def = DEFS.get(kind);
  return [kind, def?.writtenKind, def?.plural, ...(def?.shortNames ?? [])].some((name) => name?.toLowerCase() === type);
}

function configRecord(object: ConfigObject, status: ObjectStatus, registry: Registry): ConfigRecord {
  return {
    apiVersion: object.group === "" ? object.version : `${object.group}/${object.version}`,
    kind: DEFS.get(object.kind)?.writtenKind ?? object.kind,
    metadata: {
      name: object.name,
      ...(object.namespace !== "" && { namespace: object.namespace }),
      ...(Object.keys(object.labels).length > 0 && { labels: object.labels }),
      ...(Object.keys(object.annotations).length > 0 && { annotations: annotationsOf(object) }),
      ...(object.createdAt > 0 && { creationTimestamp: isoTime(object.createdAt) }),
      ...(object.generation > 0 && { generation: object.generation }),
    },
    ...contentOf(object, registry),
    origin: { ...originOf(status), ...(object.observed !== undefined && { observed: object.observed }) },
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

/** Kubernetes kinds are read in part; what was read of these is their spec, of the others whole fields of the document. */
const READ_FROM_SPEC: ReadonlySet<string> = new Set(["Service", "Ingress", "IngressClass"]);

function contentOf(object: ConfigObject, registry: Registry): Readonly<Record<string, unknown>> {
  const { kind, spec } = object;
  if (kind === "Secret") return redacted(spec);
  if (isMessage(spec)) return { spec: messageContent(spec, registry) };
  return DEFS.get(kind)?.body === "spec" || READ_FROM_SPEC.has(kind) ? { spec } : { ...(spec as object) };
}

/** The JSON of a spec without what is secret in it. */
export function specJson(spec: unknown, registry: Registry): unknown {
  return isMessage(spec) ? messageContent(spec, registry) : spec;
}

function messageContent(message: Message, registry: Registry): JsonValue {
  const schema = registry.getMessage(message.$typeName);
  return schema === undefined ? {} : withoutSecrets(messageJson(registry, schema, message));
}

const isMessage = (spec: unknown): spec is Message => typeof spec === "object" && spec !== null && "$typeName" in spec;

/** Type and keys of a Secret and nothing of their content, whatever else is known of it. */
function redacted(spec: unknown): Readonly<Record<string, unknown>> {
  const { type, data } = spec as Partial<KubernetesSecret>;
  return { ...(type !== undefined && { type }), data: Object.fromEntries(Object.keys(data ?? {}).map((key) => [key, REDACTED])) };
}
