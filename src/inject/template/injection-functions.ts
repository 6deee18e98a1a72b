import { toJson } from "@bufbuild/protobuf";
import { stringify } from "yaml";
import { defaultProxyConfig } from "../../config/mesh/defaults.ts";
import { ProxyConfigSchema } from "../../gen/istio/mesh/v1alpha1/proxy_config_pb.js";
import { type Fields, isFields, PROXY_CONTAINER } from "../pod.ts";
import { withNetwork, withPort } from "../templates/interception.ts";
import { printed } from "./go-values.ts";
import type { TemplateFunction } from "./template-functions.ts";

/** The functions that Istio's injector adds for its templates; where both have a name, these win over Sprig's. */
export const INJECTION_FUNCTIONS: Readonly<Record<string, TemplateFunction>> = {
  annotation: (meta, name, fallback) => printed(mapAt(meta, "annotations")[printed(name)] ?? fallback),
  isset: (map, key) => Object.hasOwn(mapOf(map), printed(key)),
  valueOrDefault: (value, fallback) => (value === undefined || value === null || value === "" ? fallback : value),
  contains: (needle, text) => printed(text).includes(printed(needle)),
  toLower: (text) => printed(text).toLowerCase(),
  directory: (path) => printed(path).slice(0, printed(path).lastIndexOf("/") + 1),
  indent: (spaces, text) => printed(text).replaceAll("\n", `\n${" ".repeat(Math.min(Math.max(Number(spaces), 0), 200))}`),
  toYaml: (value) => stringify(value ?? null, { version: "1.1", lineWidth: 0 }),
  toJSON: (value) => JSON.stringify(value ?? {}),
  structToJSON: (value) => JSON.stringify(value ?? {}),
  fromJSON: (text) => jsonOf(printed(text)),
  protoToJSON: (value) => JSON.stringify(withoutDefaults(mapOf(value))),
  toJsonMap: (...maps) => JSON.stringify(merged(maps)),
  mergeMaps: (...maps) => merged(maps),
  strdict: (...pairs) =>
    Object.fromEntries(
      pairs.flatMap((key, index): readonly [string, string][] => (index % 2 === 0 ? [[printed(key), printed(pairs[index + 1])]] : [])),
    ),
  omit: (map, ...names) => Object.fromEntries(Object.entries(mapOf(map)).filter(([key]) => !names.includes(key))),
  omitNil: (value) => withoutNull(value),
  excludeInboundPort: (port, ports) => withPort(printed(ports), printed(port)),
  includeInboundPorts: (containers) => portsOf(containers, () => true),
  applicationPorts: (containers) => portsOf(containers, (name) => name !== PROXY_CONTAINER),
  kubevirtInterfaces: printed,
  excludeInterfaces: printed,
  appendMultusNetwork: (networks) => withNetwork(printed(networks)),
  formatDuration: (duration) => printed(duration),
  // Templates do not see the environment of the control plane: what holds is the fallback.
  env: (_name, fallback) => printed(fallback),
  otelResourceAttributes: () => "",
};

const mapOf = (value: unknown): Fields => (isFields(value) ? value : {});
const mapAt = (value: unknown, name: string): Fields => mapOf(mapOf(value)[name]);
const merged = (maps: readonly unknown[]): Fields => Object.assign({}, ...maps.map(mapOf));

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}

function withoutNull(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNull).filter((item) => item !== null && item !== undefined);
  if (!isFields(value)) return value;
  const kept = Object.entries(value)
    .map(([key, item]) => [key, withoutNull(item)] as const)
    .filter(([, item]) => item !== null && item !== undefined && (!isFields(item) || Object.keys(item).length > 0));
  return Object.fromEntries(kept);
}

function portsOf(containers: unknown, wanted: (name: string) => boolean): string {
  const list = Array.isArray(containers) ? containers.filter(isFields) : [];
  return list
    .filter(({ name }) => wanted(printed(name)))
    .flatMap(({ ports }) => (Array.isArray(ports) ? ports.filter(isFields) : []))
    .filter(({ protocol }) => protocol !== "UDP" && protocol !== "SCTP")
    .map(({ containerPort }) => printed(containerPort))
    .join(",");
}

/** A ProxyConfig without what holds anyway, so that pods stay small. */
function withoutDefaults(config: Fields): Fields {
  const defaults = toJson(ProxyConfigSchema, defaultProxyConfig(), { alwaysEmitImplicit: true }) as Fields;
  const isOwn = ([key, value]: readonly [string, unknown]): boolean => JSON.stringify(value) !== JSON.stringify(defaults[key]);
  return Object.fromEntries(Object.entries(config).filter(isOwn));
}
