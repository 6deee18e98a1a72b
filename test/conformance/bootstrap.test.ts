import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fromBinary, fromJson, type JsonObject, type JsonValue, type Registry } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { readAgentConfig } from "../../src/agent/agent-config.ts";
import { takeApart } from "../../src/agent/bootstrap/given-bootstrap.ts";
import { localPart } from "../../src/agent/bootstrap/local-part.ts";
import { type NodeIdentity, nodeIdentity } from "../../src/agent/node-identity.ts";
import { readProxyFlags } from "../../src/agent/proxy-flags.ts";
import { BootstrapSchema } from "../../src/gen/envoy/config/bootstrap/v3/bootstrap_pb.js";
import { builtInBootstrap } from "../../src/generate/bootstrap-built-in.ts";
import { messageJson, messageRegistry } from "../../src/wire/json.ts";

const CORPUS = resolve(import.meta.dirname, "../../../shared/conformance/bootstrap");
const LEAST_SHARE = 0.97;

interface Case {
  readonly id: string;
  readonly inputs: readonly string[];
  readonly expected: readonly string[];
  readonly options?: {
    readonly env?: Readonly<Record<string, string>>;
    readonly compliancePolicy?: string;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly proxyMetadata?: Readonly<Record<string, string>>;
    readonly envoySecureMetricsPort?: number;
    readonly envoySecureMergedMetricsPort?: number;
  };
}

/** What is not compared, and why. */
const DIFFERENT: readonly (readonly [field: RegExp, reason: string])[] = [
  [/^\/node\/metadata\/ISTIO_VERSION$/, "a build's"],
  [/^\/node\/metadata\/METADATA_DISCOVERY$/, "an extension of Istio's own Envoy"],
  [/^\/node\/metadata\/PILOT_SAN\//, "a name that Istio's agent works out from the address, and nobody reads"],
  [
    /^\/node\/metadata\/PROXY_CONFIG\/(configPath|customConfigFile|statusPort)$/,
    "paths of the machine, and a default that Istio's test puts in",
  ],
  [/^\/node\/metadata\/(NAME|NAMESPACE|SERVICE_ACCOUNT|CLUSTER_ID)$/, "who it is, which no variable says in Istio's tests"],
  [
    /^\/node\/metadata\/(ADMIN_PORT|STATUS_PORT|COMPLIANCE_POLICY|PROXY_CONFIG_OVER|STANDARD_METRICS|VHDS)$/,
    "what our control plane asks of our agent",
  ],
  [/^\/node\/metadata\/INTERCEPTION_MODE$/, "injection's to say; the agent says it on machines too"],
  [/\/pipe\/path$/, "paths of the machine"],
  [/metadata_discovery|workload_discovery/, "an extension of Istio's own Envoy"],
  [/\/maxRequestsPerConnection$/, "deprecated; Envoy warns of it at every start"],
  [/xds-grpc\/upstreamConnectionOptions/, "TCP's probes on a Unix socket"],
  [/lightstep/, "a tracer that upstream Envoy has no more"],
  [/^\/admin\/profilePath$/, "a path of Istio's image"],
];

const readJson = (file: string): JsonValue => JSON.parse(readFileSync(join(CORPUS, file), "utf8")) as JsonValue;

/** The addresses with which Istio's own tests made the goldens; the first is the pod's. */
const ADDRESSES = ["10.3.3.3", "10.4.4.4", "10.5.5.5", "10.6.6.6", "10.4.4.4"];

/** The node as our agent makes it of what Istio's was told. */
async function nodeOf({ inputs: [input = ""], options = {} }: Case): Promise<NodeIdentity> {
  const proxyConfig = readJson(input) as Record<string, JsonValue>;
  if (options.proxyMetadata !== undefined) proxyConfig.proxyMetadata = options.proxyMetadata;
  const config = await readAgentConfig({
    baseDir: "/nowhere",
    env: {
      PROXY_CONFIG: JSON.stringify(proxyConfig),
      INSTANCE_IP: ADDRESSES[0],
      WORKLOAD_IDENTITY_SOCKET_FILE: "test.sock",
      ENVOY_SECURE_METRICS_PORT: String(options.envoySecureMetricsPort ?? 0),
      ENVOY_SECURE_MERGED_METRICS_PORT: String(options.envoySecureMergedMetricsPort ?? 0),
      COMPLIANCE_POLICY: options.compliancePolicy,
      ...(options.annotations !== undefined && { ISTIO_METAJSON_ANNOTATIONS: JSON.stringify(options.annotations) }),
      ...options.env,
      ...readProxyFlags(["--outlierLogPath", "/dev/stdout"]).variables,
    },
    type: "sidecar",
    hostname: "foo",
    interfaces: ADDRESSES.map((address, index) => ({ interface: `eth${index}`, address })),
    version: "",
  });
  return nodeIdentity({ ...config, hasIdentity: true, hasCredentials: false });
}

/** Leaves by path; members of lists that have names stand under those. */
function leaves(value: JsonValue, path = "", found: Map<string, JsonValue> = new Map()): ReadonlyMap<string, JsonValue> {
  if (Array.isArray(value)) for (const [index, item] of value.entries()) leaves(item, `${path}/${nameOf(item) ?? index}`, found);
  else if (typeof value === "object" && value !== null)
    for (const [key, item] of Object.entries(unwrapped(value))) leaves(item, `${path}/${key}`, found);
  else found.set(path, value);
  return found;
}

function nameOf(value: JsonValue): string | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  const name = value.name ?? value.tagName ?? value.prefix ?? value.suffix;
  return typeof name === "string" ? name : undefined;
}

/** An extension given as TypedStruct is the same as one given as itself. */
function unwrapped(value: JsonObject): JsonObject {
  if (!String(value["@type"] ?? "").endsWith("TypedStruct")) return value;
  return { "@type": value.typeUrl ?? "", ...(camelKeys(value.value ?? {}) as JsonObject) };
}

function camelKeys(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(camelKeys);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [camel(key), camelKeys(item)]));
}

/** Extensions that we have no descriptors for are read as structures, as Envoy reads those that we send. */
function readable(value: JsonValue, registry: Registry): JsonValue {
  if (Array.isArray(value)) return value.map((item) => readable(item, registry));
  if (typeof value !== "object" || value === null) return value;
  const { "@type": type, ...rest } = value;
  const fields = Object.fromEntries(Object.entries(rest).map(([key, item]) => [key, readable(item, registry)]));
  if (typeof type !== "string") return fields;
  const known = registry.getMessage(type.slice(type.lastIndexOf("/") + 1)) !== undefined;
  return known ? { "@type": type, ...fields } : { "@type": "type.googleapis.com/xds.type.v3.TypedStruct", typeUrl: type, value: fields };
}

const camel = (name: string): string => name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());

describe.skipIf(!existsSync(CORPUS))("bootstraps (skipped where ../shared is absent)", () => {
  it("agree with Istio's own agent in what upstream Envoy has", async () => {
    const registry = await messageRegistry();
    const { cases } = readJson("index.json") as unknown as { readonly cases: readonly Case[] };
    const toLeaves = (bytes: Uint8Array): ReadonlyMap<string, JsonValue> =>
      leaves(messageJson(registry, BootstrapSchema, fromBinary(BootstrapSchema, bytes)));
    const totals = { same: 0, all: 0 };
    const misses: string[] = [];
    for (const one of cases) {
      const { metadata, locality } = await nodeOf(one);
      const proxyConfig = metadata.PROXY_CONFIG as JsonObject;
      const local = localPart({
        node: { id: "sidecar~1.2.3.4~foo~bar", cluster: "istio-proxy", metadata, locality },
        adminPort: Number(proxyConfig.proxyAdminPort ?? 15_000),
        onlyIpv6: false,
        logJson: false,
        xdsSocket: "/tmp/XDS",
        sdsSocket: "socket",
      });
      const ours = toLeaves(Buffer.concat([takeApart(builtInBootstrap(metadata as JsonObject)).bootstrap, local]));
      const golden = fromJson(BootstrapSchema, readable(readJson(one.expected[0] ?? ""), registry), {
        registry,
        ignoreUnknownFields: true,
      });
      const theirs = leaves(messageJson(registry, BootstrapSchema, golden));
      const paths = [...new Set([...ours.keys(), ...theirs.keys()])].filter((path) => !DIFFERENT.some(([field]) => field.test(path)));
      const wrong = paths.filter((path) => ours.get(path) !== theirs.get(path));
      totals.all += paths.length;
      totals.same += paths.length - wrong.length;
      misses.push(
        ...wrong.map((path) => `${one.id}: ${path}: ${JSON.stringify(ours.get(path))}, Istio ${JSON.stringify(theirs.get(path))}`),
      );
    }
    const share = totals.same / totals.all;
    process.stdout.write(
      `bootstraps: ${totals.same} of ${totals.all} fields in ${cases.length} cases as Istio's agent has them (${(share * 100).toFixed(1)} %)\n`,
    );
    if (process.env.CONFORMANCE_MISSES !== undefined) process.stdout.write(`${misses.join("\n")}\n`);
    expect(share).toBeGreaterThanOrEqual(LEAST_SHARE);
    // Of the node all that can be compared is the same.
    expect(misses.filter((miss) => miss.includes(": /node/"))).toEqual([]);
  });
});
