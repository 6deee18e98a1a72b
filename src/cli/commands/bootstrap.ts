import { stat } from "node:fs/promises";
import { join } from "node:path";
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { type BootstrapInput, buildBootstrap } from "../../envoy/bootstrap/bootstrap.ts";
import { BootstrapSchema } from "../../gen/envoy/config/bootstrap/v3/bootstrap_pb.js";
import { parseLocality } from "../../model/locality.ts";
import { parseHostPort } from "../../settings/host-port.ts";
import { messageJson, messageRegistry } from "../../wire/json.ts";
import { type Arguments, usageError } from "../arguments.ts";
import type { Command, Host } from "../command.ts";
import { baseDirOf } from "../istiod-client.ts";

const DEFAULT_ADDRESS = "127.0.0.1:15010";
const DEFAULT_SERVER_NAME = "istiod.istio-system.svc";

export const bootstrapCommand: Command = {
  name: "bootstrap",
  aliases: [],
  about: "Print the configuration an Envoy starts with to become a proxy of the mesh",
  operands: "",
  flags: [
    { name: "name", value: "NAME", about: "name of the workload (default: this machine's)" },
    { name: "namespace", short: "n", value: "NAMESPACE", about: "its namespace (default: default)" },
    { name: "ip", value: "ADDRESS[,…]", about: "its addresses (default: the first of this machine)" },
    { name: "type", value: "sidecar|router", about: "what it is (default: sidecar)" },
    { name: "service-account", value: "NAME", about: "its service account (default: default)" },
    { name: "labels", short: "l", value: "KEY=VALUE[,…]", about: "its labels" },
    { name: "locality", value: "REGION[/ZONE[/SUBZONE]]", about: "where it runs" },
    { name: "address", value: "HOST:PORT", about: `where istiod serves xDS, or unix:/PATH of a socket (default: ${DEFAULT_ADDRESS})` },
    { name: "root-cert", value: "FILE", about: "use TLS towards istiod, trusting the roots in this file" },
    { name: "server-name", value: "NAME", about: `name in istiod's certificate (default: ${DEFAULT_SERVER_NAME})` },
    { name: "protocol", value: "delta|sotw", about: "variant of xDS (default: delta)" },
    { name: "interception", value: "REDIRECT|TPROXY|NONE", about: "how traffic gets into a sidecar (default: REDIRECT)" },
    { name: "admin-port", value: "PORT", about: "Envoy's admin interface on loopback (default: 15000); 0 leaves it out" },
    { name: "readiness-port", value: "PORT", about: "readiness probe (default: 15021); 0 leaves it out" },
    { name: "prometheus-port", value: "PORT", about: "Envoy's metrics (default: 15090); 0 leaves it out" },
    {
      name: "sds-socket",
      value: "PATH",
      about: "socket where certificates are served (default: the one under $ISTIO_HOME, if it is there)",
    },
    { name: "cluster-id", value: "NAME", about: "cluster the workload belongs to (default: $CLUSTER_ID, then Kubernetes)" },
    { name: "meta", value: "KEY=VALUE", many: true, about: "more node metadata; a value that begins with { or [ is JSON" },
  ],
  outputs: ["json", "yaml"],
  notes: ["Without an SDS socket the proxy has no certificate, and is sent configuration without mutual TLS."],
  async run(args, host) {
    if (args.operands.length > 0) throw usageError(`${JSON.stringify(args.operands[0])} is not understood; everything is given by flags`);
    const input = bootstrapInput(args, host, await sdsSocket(args, host));
    return { data: messageJson(await messageRegistry(), BootstrapSchema, buildBootstrap(input)), text: "" };
  },
};

/** From flags to what decides a bootstrap. Node id and metadata are Istio's, so that any control plane that speaks Istio's dialect understands them. */
export function bootstrapInput(args: Arguments, host: Host, socket: string | undefined): BootstrapInput {
  const type = args.choice("type", ["sidecar", "router"]) ?? "sidecar";
  const name = args.text("name") ?? host.hostname;
  const namespace = args.text("namespace") ?? "default";
  const addresses = args.text("ip")?.split(",") ?? host.addresses.slice(0, 1);
  const [address = "127.0.0.1"] = addresses;
  const labels = pairs("labels", args.text("labels")?.split(",") ?? []);
  const ports = { readinessPort: args.port("readiness-port", 15_021), prometheusPort: args.port("prometheus-port", 15_090) };
  return {
    nodeId: `${type}~${address}~${name}.${namespace}~${namespace}.svc.cluster.local`,
    nodeCluster: `${labels.app ?? labels["app.kubernetes.io/name"] ?? name}.${namespace}`,
    locality: parseLocality(args.text("locality") ?? ""),
    metadata: {
      NAME: name,
      NAMESPACE: namespace,
      INSTANCE_IPS: addresses.length === 0 ? address : addresses.join(","),
      SERVICE_ACCOUNT: args.text("service-account") ?? "default",
      CLUSTER_ID: args.text("cluster-id") ?? (host.env.CLUSTER_ID || "Kubernetes"),
      ISTIO_VERSION: host.istioVersion,
      LABELS: labels,
      ...(type === "sidecar" && { INTERCEPTION_MODE: args.choice("interception", ["REDIRECT", "TPROXY", "NONE"]) ?? "REDIRECT" }),
      ...(socket === undefined && { WORKLOAD_IDENTITY: "none" }),
      ...(ports.readinessPort !== 0 && { ENVOY_STATUS_PORT: ports.readinessPort }),
      ...(ports.prometheusPort !== 0 && { ENVOY_PROMETHEUS_PORT: ports.prometheusPort }),
      ...moreMetadata(args.list("meta")),
    },
    discovery: discoveryOf(args),
    adminPort: args.port("admin-port", 15_000),
    ...ports,
    sdsSocket: socket,
  };
}

function discoveryOf(args: Arguments): BootstrapInput["discovery"] {
  const address = args.text("address") ?? DEFAULT_ADDRESS;
  const at = address.startsWith("unix:/") ? { host: address, port: 0 } : parseHostPort(address);
  if (typeof at === "string") throw usageError(`--address: ${at}`);
  if (at.host === "") throw usageError("--address must name a host");
  const rootCertFile = args.text("root-cert");
  if (rootCertFile === undefined && args.has("server-name")) throw usageError("--server-name is of use only with --root-cert");
  return {
    ...at,
    protocol: args.choice("protocol", ["delta", "sotw"]) ?? "delta",
    tls: rootCertFile === undefined ? undefined : { rootCertFile, serverName: args.text("server-name") ?? DEFAULT_SERVER_NAME },
  };
}

/** The socket that is named, else the one an agent or SPIRE has in the usual place. */
async function sdsSocket(args: Arguments, host: Host): Promise<string | undefined> {
  const named = args.text("sds-socket");
  if (named !== undefined) return named;
  const usual = join(baseDirOf(host), "var/run/secrets/workload-spiffe-uds/socket");
  const found = await stat(usual).catch(() => undefined);
  return found?.isSocket() === true ? usual : undefined;
}

function pairs(flag: string, words: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    words.map((word): [string, string] => {
      const equals = word.indexOf("=");
      if (equals < 1) throw usageError(`--${flag} takes KEY=VALUE, not ${JSON.stringify(word)}`);
      return [word.slice(0, equals), word.slice(equals + 1)];
    }),
  );
}

function moreMetadata(words: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(pairs("meta", words)).map(([key, value]) => [key, metadataValue(key, value)]));
}

function metadataValue(key: string, value: string): JsonValue {
  if (!/^[[{]/.test(value)) return value;
  try {
    return JSON.parse(value) as JsonValue;
  } catch {
    throw usageError(`--meta ${key}: the value begins like JSON, but is none`);
  }
}
