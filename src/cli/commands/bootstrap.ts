import { readFile, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { isIp } from "../../base/address.ts";
import { type BootstrapInput, buildBootstrap, type DiscoveryTls } from "../../envoy/bootstrap/bootstrap.ts";
import { type Bootstrap, BootstrapSchema } from "../../gen/envoy/config/bootstrap/v3/bootstrap_pb.js";
import { patchBootstrapOf } from "../../generate/patches/bootstrap.ts";
import { objectOf } from "../../generate/patches/patched-provider.ts";
import { readNode } from "../../generate/proxy-view.ts";
import { parseLocality } from "../../model/locality.ts";
import { parseHostPort } from "../../settings/host-port.ts";
import { messageJson, messageRegistry } from "../../wire/json.ts";
import { type Arguments, usageError } from "../arguments.ts";
import type { Command, Host } from "../command.ts";
import { currentMesh } from "../diff/current-mesh.ts";
import { baseDirOf } from "../istiod-client.ts";

const DEFAULT_ADDRESS = "127.0.0.1:15010";
const DEFAULT_SECURE_ADDRESS = "127.0.0.1:15012";
const DEFAULT_SERVER_NAME = "istiod.istio-system.svc";
/** Where the roots of the mesh lie below the base directory: beside a workload, in a pod, beside the CA. */
const USUAL_ROOTS = ["etc/certs/root-cert.pem", "var/run/secrets/istio/root-cert.pem", "etc/cacerts/root-cert.pem"];
/** Where systems keep the roots they trust: Debian, Red Hat, SUSE, Alpine and others. */
const SYSTEM_ROOTS = [
  "/etc/ssl/certs/ca-certificates.crt",
  "/etc/pki/tls/certs/ca-bundle.crt",
  "/etc/ssl/ca-bundle.pem",
  "/etc/ssl/cert.pem",
];
const USUAL_TOKEN = "var/run/secrets/tokens/istio-token";

export const bootstrapCommand: Command = {
  name: "bootstrap",
  aliases: [],
  about: "Print the configuration an Envoy starts with to become a proxy of the mesh",
  operands: "",
  flags: [
    { name: "name", value: "NAME", about: "name of the workload (default: this machine's)" },
    { name: "namespace", short: "n", value: "NAMESPACE", about: "its namespace (default: default)" },
    { name: "domain", value: "DOMAIN", about: "domain of its short names (default: its namespace, then svc.cluster.local)" },
    { name: "ip", value: "ADDRESS[,…]", about: "its addresses (default: the first of this machine)" },
    { name: "type", value: "sidecar|router", about: "what it is (default: sidecar)" },
    { name: "service-account", value: "NAME", about: "its service account (default: default)" },
    { name: "labels", short: "l", value: "KEY=VALUE[,…]", about: "its labels" },
    { name: "locality", value: "REGION[/ZONE[/SUBZONE]]", about: "where it runs" },
    { name: "address", value: "HOST:PORT", about: `where istiod serves xDS, or unix:/PATH of a socket (default: ${DEFAULT_ADDRESS})` },
    {
      name: "direct",
      about: `no agent: Envoy itself calls istiod over TLS with its token (address: ${DEFAULT_SECURE_ADDRESS} by default)`,
    },
    { name: "token", value: "FILE", about: `file with the token, for --direct (default: $ISTIO_HOME/${USUAL_TOKEN})` },
    {
      name: "root-cert",
      value: "FILE",
      about: "use TLS towards istiod, trusting the roots in this file (--direct finds those of the mesh)",
    },
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
    {
      name: "base",
      value: "DIRECTORY",
      about: "configuration whose EnvoyFilters for BOOTSTRAP are applied (default: the one in $ISTIO_HOME, if it is there)",
    },
    { name: "meta", value: "KEY=VALUE", many: true, about: "more node metadata; a value that begins with { or [ is JSON" },
  ],
  outputs: ["json", "yaml"],
  notes: [
    "Without an SDS socket the proxy has no certificate, and is sent configuration without mutual TLS.",
    "The token is read whenever Envoy connects, so that a renewed one is used; with it a gateway is given the credentials that it names.",
  ],
  async run(args, host) {
    if (args.operands.length > 0) throw usageError(`${JSON.stringify(args.operands[0])} is not understood; everything is given by flags`);
    const input = bootstrapInput(args, host, {
      sdsSocket: await sdsSocket(args, host),
      direct: await directTls(args, host),
      systemRoots: await firstFile(SYSTEM_ROOTS),
    });
    const patched = await patchedBootstrap(buildBootstrap(input), args, host);
    return { data: messageJson(await messageRegistry(), BootstrapSchema, patched), text: "" };
  },
};

/** The bootstrap with the patches that the configuration at hand has for it. What is left out of them is said, and costs nothing else. */
async function patchedBootstrap(bootstrap: Bootstrap, args: Arguments, host: Host): Promise<Bootstrap> {
  const named = args.text("base");
  const dir = resolve(host.cwd, named ?? baseDirOf(host));
  if (named === undefined && (await stat(join(dir, "etc/istio")).catch(() => undefined))?.isDirectory() !== true) return bootstrap;
  const { world } = await currentMesh(dir, { env: host.env, named: named !== undefined });
  const facts = bootstrap.node === undefined ? { refused: "it has no node" } : readNode(bootstrap.node);
  if ("refused" in facts) throw usageError(facts.refused);
  const patched = patchBootstrapOf(world.patches.plans, world.view(facts), bootstrap);
  for (const { patch, reason } of patched.outcome.faults) host.err(`${objectOf(patch)} is left out: ${reason}\n`);
  return patched.bootstrap;
}

/** From flags to what decides a bootstrap. Node id and metadata are Istio's, so that any control plane that speaks Istio's dialect understands them. */
export function bootstrapInput(args: Arguments, host: Host, { sdsSocket: socket, direct, systemRoots }: Surroundings): BootstrapInput {
  const type = args.choice("type", ["sidecar", "router"]) ?? "sidecar";
  const name = args.text("name") ?? host.hostname;
  const namespace = args.text("namespace") ?? "default";
  const addresses = args.text("ip")?.split(",") ?? host.addresses.slice(0, 1);
  for (const one of addresses) if (!isIp(one)) throw usageError(`--ip: ${JSON.stringify(one)} is no address`);
  const [address = "127.0.0.1"] = addresses;
  const labels = pairs("labels", args.text("labels")?.split(",") ?? []);
  const ports = { readinessPort: args.port("readiness-port", 15_021), prometheusPort: args.port("prometheus-port", 15_090) };
  return {
    nodeId: `${type}~${address}~${name}.${namespace}~${args.text("domain") ?? `${namespace}.svc.cluster.local`}`,
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
      ...(socket === undefined && { WORKLOAD_IDENTITY: "none", ...(systemRoots !== undefined && { SYSTEM_ROOTS: systemRoots }) }),
      ...(type === "sidecar" && { VHDS: "true" }),
      STANDARD_METRICS: "true",
      ...(ports.readinessPort !== 0 && { ENVOY_STATUS_PORT: ports.readinessPort }),
      ...(ports.prometheusPort !== 0 && { ENVOY_PROMETHEUS_PORT: ports.prometheusPort }),
      ...moreMetadata(args.list("meta")),
    },
    discovery: discoveryOf(args, direct),
    adminPort: args.port("admin-port", 15_000),
    ...ports,
    sdsSocket: socket,
  };
}

/** What was found on this machine. */
export interface Surroundings {
  readonly sdsSocket: string | undefined;
  /** How Envoy proves to istiod who it is, where it does so itself. */
  readonly direct: DiscoveryTls | undefined;
  /** The file with the roots that the system trusts. */
  readonly systemRoots: string | undefined;
}

function discoveryOf(args: Arguments, direct: DiscoveryTls | undefined): BootstrapInput["discovery"] {
  const address = args.text("address") ?? (direct === undefined ? DEFAULT_ADDRESS : DEFAULT_SECURE_ADDRESS);
  const at = address.startsWith("unix:/") ? { host: address, port: 0 } : parseHostPort(address);
  if (typeof at === "string") throw usageError(`--address: ${at}`);
  if (at.host === "") throw usageError("--address must name a host");
  const rootCertFile = args.text("root-cert");
  if (direct !== undefined && address.startsWith("unix:")) throw usageError("--direct needs the address of a secure port, not a socket");
  if (rootCertFile === undefined && direct === undefined && args.has("server-name"))
    throw usageError("--server-name is of use only with --root-cert");
  return {
    ...at,
    protocol: args.choice("protocol", ["delta", "sotw"]) ?? "delta",
    tls:
      direct !== undefined || rootCertFile === undefined
        ? direct
        : { rootCertFile, serverName: args.text("server-name") ?? DEFAULT_SERVER_NAME },
  };
}

async function directTls(args: Arguments, host: Host): Promise<DiscoveryTls | undefined> {
  if (!args.has("direct")) {
    if (args.has("token")) throw usageError("--token is of use only with --direct");
    return undefined;
  }
  const below = (path: string): string => join(baseDirOf(host), path);
  const tokenFile = resolve(args.text("token") ?? below(USUAL_TOKEN));
  const token = await readFile(tokenFile, "utf8").catch(() => undefined);
  if (token === undefined) throw usageError(`there is no token in ${tokenFile}; name another file with --token`);
  if (token !== token.trim() || token === "")
    throw usageError(`${tokenFile} must hold the token alone: Envoy sends it with any white space around it`);
  const rootCertFile = args.text("root-cert") ?? (await firstFile(USUAL_ROOTS.map(below)));
  if (rootCertFile === undefined) throw usageError("the roots of the mesh are not found here; name the file with --root-cert");
  return { rootCertFile: resolve(rootCertFile), serverName: args.text("server-name") ?? DEFAULT_SERVER_NAME, tokenFile };
}

async function firstFile(paths: readonly string[]): Promise<string | undefined> {
  for (const path of paths) if ((await stat(path).catch(() => undefined))?.isFile() === true) return path;
  return undefined;
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
