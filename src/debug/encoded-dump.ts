import { type DescMessage, fromJson, type JsonValue, type Registry, toBinary } from "@bufbuild/protobuf";
import { encodedBytes } from "../wire/encode.ts";
import type { Encoded } from "../wire/encoded.ts";
import { bytesField, messageField, textField } from "../wire/field-writer.ts";
import type { ConfigDump, ConfigDumpPart, Json } from "./api-types.ts";

/** Where the entries of a section of Envoy's dump have their parts (envoy/admin/v3/config_dump.proto). Those that are not named here are not sent. */
interface Section {
  /** Fields with entries: number, and how an entry is written. */
  readonly lists: Readonly<
    Record<string, { readonly number: number; readonly entry: (entry: DumpEntry, any: AnyBytes) => readonly Buffer[] }>
  >;
}

type DumpEntry = Readonly<Record<string, Json>>;
/** A resource as `google.protobuf.Any`, in a field. */
type AnyBytes = (field: number, json: Json | undefined) => Buffer;

const resourceIn =
  (name: string) =>
  (entry: DumpEntry, any: AnyBytes): readonly Buffer[] => [version(1, entry), any(2, entry[name])];

const secret = (entry: DumpEntry, any: AnyBytes): readonly Buffer[] => [
  textField(1, String(entry.name)),
  version(2, entry),
  any(4, entry.secret),
];

const listener = (entry: DumpEntry, any: AnyBytes): readonly Buffer[] => [
  textField(1, String(entry.name)),
  ...[entry.activeState, entry.warmingState].map((state, index) =>
    isObject(state) ? messageField(2 + index, [version(1, state), any(2, state.listener)]) : Buffer.alloc(0),
  ),
];

const version = (field: number, { versionInfo }: DumpEntry): Buffer => textField(field, typeof versionInfo === "string" ? versionInfo : "");

const ADMIN = "type.googleapis.com/envoy.admin.v3.";

/** Endpoints are left out, as in Istio's answer to the same question. */
const SECTIONS: Readonly<Record<string, Section>> = {
  [`${ADMIN}ClustersConfigDump`]: {
    lists: {
      dynamicActiveClusters: { number: 3, entry: resourceIn("cluster") },
      dynamicWarmingClusters: { number: 4, entry: resourceIn("cluster") },
    },
  },
  [`${ADMIN}ListenersConfigDump`]: { lists: { dynamicListeners: { number: 3, entry: listener } } },
  [`${ADMIN}RoutesConfigDump`]: { lists: { dynamicRouteConfigs: { number: 3, entry: resourceIn("routeConfig") } } },
  [`${ADMIN}SecretsConfigDump`]: {
    lists: { dynamicActiveSecrets: { number: 2, entry: secret }, dynamicWarmingSecrets: { number: 3, entry: secret } },
  },
  [`${ADMIN}EcdsConfigDump`]: { lists: { ecdsFilters: { number: 1, entry: resourceIn("ecdsFilter") } } },
};

/**
 * A dump as the messages of Envoy's admin API, one resource each: what `istioctl proxy-status POD` of Istio compares with what the proxy itself tells. Made from the JSON of the dump, so that
 * what is redacted there is redacted here.
 */
export async function encodedDump(
  dump: ConfigDump,
  { registry, pause }: { readonly registry: Registry; readonly pause: () => Promise<void> | undefined },
): Promise<readonly Encoded[]> {
  const any: AnyBytes = (field, json) => (isObject(json) ? messageField(field, anyFields(json, registry)) : Buffer.alloc(0));
  const sections: Encoded[] = [];
  for (const part of dump.configs) {
    const section = SECTIONS[part["@type"]];
    if (section === undefined) continue;
    const bytes: Buffer[] = [];
    for (const [name, { number, entry }] of Object.entries(section.lists))
      for (const one of listIn(part, name)) {
        bytes.push(bytesField(number, Buffer.concat(entry(one, any))));
        await pause();
      }
    sections.push(encodedBytes(part["@type"], part["@type"], Buffer.concat(bytes)));
  }
  return sections;
}

const listIn = (part: ConfigDumpPart, name: string): readonly DumpEntry[] =>
  ((part as unknown as Readonly<Record<string, unknown>>)[name] as readonly DumpEntry[] | undefined) ?? [];

const isObject = (json: Json | undefined): json is DumpEntry => typeof json === "object" && json !== null && !Array.isArray(json);

function anyFields({ "@type": typeUrl, ...content }: DumpEntry, registry: Registry): readonly Buffer[] {
  const schema = registry.getMessage(String(typeUrl).slice(String(typeUrl).lastIndexOf("/") + 1));
  return [
    textField(1, String(typeUrl)),
    schema === undefined ? Buffer.alloc(0) : bytesField(2, messageOf(schema, content as JsonValue, registry)),
  ];
}

const messageOf = (schema: DescMessage, json: JsonValue, registry: Registry): Uint8Array =>
  toBinary(schema, fromJson(schema, json, { registry, ignoreUnknownFields: true }));
