import { readFile, stat } from "node:fs/promises";
import { isAbsolute, join, resolve } from "node:path";
import { canonicalAddress, isIp } from "../base/address.ts";
import { EdgeError } from "../base/errors.ts";
import { type KeyKind, RSA_BITS } from "../pki/keys.ts";
import type { AgentSettings } from "../settings/agent-table.ts";
import { readAgentSettings } from "../settings/read-settings.ts";
import type { CallHeaders } from "../wire/grpc-channel.ts";
import { callHeaders } from "./call-headers.ts";
import { parseTargets, type Target } from "./control-plane-address.ts";
import { readMeshFile } from "./mesh-file.ts";
import type { AgentProxyType } from "./node-identity.ts";
import { type AgentProxyConfig, readProxyConfig } from "./proxy-config.ts";
import { BUNDLE_FILE, withSidecarEnv } from "./sidecar-env.ts";
import { MESH_TOKEN } from "./workload-token.ts";

/** An address of the machine, and the interface that has it. */
export interface InterfaceAddress {
  readonly interface: string;
  readonly address: string;
}

/** The process an agent finds itself in. */
export interface AgentHost {
  readonly baseDir: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly type: AgentProxyType;
  readonly hostname: string;
  /** Addresses of the machine, loopback aside. */
  readonly interfaces: readonly InterfaceAddress[];
  /** Version of Istio's API that the proxy is told to be of. */
  readonly version: string;
}

/** Everything an agent is told, read once. */
export interface AgentConfig extends AgentHost {
  readonly settings: AgentSettings;
  /** It shares what it writes with other containers, which may run as other users. */
  readonly inPod: boolean;
  readonly proxy: AgentProxyConfig;
  /** Addresses of the workload, the one that others know it by first. */
  readonly addresses: readonly string[];
  /** Where configuration comes from; empty: there is no control plane to talk to. */
  readonly discovery: readonly Target[];
  /** Nobody said where the control plane is, so it is where Istio's is by default. */
  readonly isAddressAssumed: boolean;
  /** Where certificates are signed; empty: nowhere. */
  readonly ca: readonly Target[];
  readonly keyKind: KeyKind;
  /** Headers of the user's for calls. */
  readonly headers: { readonly xds: CallHeaders; readonly ca: CallHeaders };
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly paths: AgentPaths;
}

export interface AgentPaths {
  /** Working files; bootstrap and process id of Envoy. */
  readonly work: string;
  readonly xdsSocket: string;
  readonly sdsSocket: string;
  /** The agent's socket for secrets where somebody else has that one. */
  readonly filesSocket: string;
  /** Where a server on this machine may have credentials of its own (names `sds://…`). */
  readonly credentialSocket: string;
  readonly lastGood: string;
  /** Where the certificate lies in files: copies of ours, or, with FILE_MOUNTED_CERTS, what others put there. Undefined where no copies are asked for. */
  readonly certificates: string | undefined;
  /** What gRPC libraries read. */
  readonly grpcBootstrap: string;
}

/** Istio's injector and its bundles for machines write into ProxyConfig only what is not the default, which this address is. */
const DEFAULT_ADDRESS = "istiod.istio-system.svc:15012";

/** Reads environment, `sidecar.env` and what the kubelet wrote. Throws `EdgeError` for what cannot be read. */
export async function readAgentConfig(host: AgentHost): Promise<AgentConfig> {
  const { baseDir } = host;
  const said = await withSidecarEnv(baseDir, host.env);
  const { settings, faults } = readAgentSettings(said);
  const [fault] = faults;
  if (fault !== undefined) throw new EdgeError("usage", `${fault.name}: ${fault.message}`);
  if (settings.fileMountedCerts && settings.provisionedCerts !== "")
    throw new EdgeError("usage", "FILE_MOUNTED_CERTS and PROV_CERT exclude each other");
  const meshFile = await readMeshFile(resolve(baseDir, settings.meshConfig));
  const proxy = await readProxyConfig(settings.proxyConfig, meshFile);
  const env = { ...proxy.nodeMetadata, ...said };
  const rules = { inPod: env.KUBERNETES_SERVICE_HOST !== undefined, serverName: settings.istiodSan, plaintext: proxy.plaintext };
  const isInjected = rules.inPod && env.PROXY_CONFIG !== undefined;
  const named = settings.pilotAddress || settings.istioAddress || proxy.discoveryAddress;
  const address = named || (isInjected || meshFile !== undefined || (await isMachine(baseDir, env)) ? DEFAULT_ADDRESS : "");
  const discovery = parseTargets(address, rules);
  const ca = caOf(discovery, settings, rules.inPod);
  const annotations = await podInfo(join(baseDir, "etc/istio/pod/annotations"));
  return {
    ...host,
    env,
    settings,
    inPod: rules.inPod,
    proxy,
    addresses: workloadAddresses(settings.instanceIp, host.interfaces, annotations[EXCLUDED_INTERFACES] ?? ""),
    discovery,
    isAddressAssumed: named === "" && address !== "",
    ca,
    keyKind: keyKindOf(settings),
    headers: { xds: callHeaders(env, "XDS_HEADER_"), ca: callHeaders(env, "CA_HEADER_") },
    labels: await podInfo(join(baseDir, "etc/istio/pod/labels")),
    annotations,
    paths: pathsOf(baseDir, settings, rules.inPod),
  };
}

const EXCLUDED_INTERFACES = "traffic.sidecar.istio.io/excludeInterfaces";

/**
 * The pod's address first, since that is the one istiod takes for the pod's; then those of all interfaces that are not left out of the mesh: a pod of two
 * address families has the second from there alone.
 */
function workloadAddresses(instanceIp: string, interfaces: readonly InterfaceAddress[], excluded: string): readonly string[] {
  const leftOut = new Set(excluded.split(",").map((name) => name.trim()));
  const own = interfaces.filter((one) => !leftOut.has(one.interface)).map(({ address }) => address);
  return [...new Set([...(isIp(instanceIp) ? [instanceIp] : []), ...own].map(canonicalAddress))];
}

/** Where certificates are signed: where xDS comes from, unless another place is named; nowhere where they lie in files. */
function caOf(discovery: readonly Target[], settings: AgentSettings, inPod: boolean): readonly Target[] {
  if (settings.fileMountedCerts) return [];
  return settings.caAddress === "" ? discovery.filter(({ tls }) => tls) : parseTargets(settings.caAddress, { inPod });
}

/** What its key is to be: as Istio's variables say, which prefer RSA only where its size is given. */
function keyKindOf({ rsaBits, eccAlgorithm, eccCurve }: AgentSettings): KeyKind {
  if (rsaBits === undefined || eccAlgorithm !== undefined) return eccCurve === "P384" ? "P-384" : "P-256";
  if (rsaBits >= RSA_BITS.least && rsaBits <= RSA_BITS.most) return `RSA-${rsaBits}`;
  throw new EdgeError("usage", `WORKLOAD_RSA_KEY_SIZE: RSA keys have ${RSA_BITS.least} to ${RSA_BITS.most} bits`);
}

/** Whether the machine was told to join a mesh: then it is no control plane, even where nothing says whose mesh. */
async function isMachine(baseDir: string, env: AgentHost["env"]): Promise<boolean> {
  if ((env.ISTIO_META_AUTO_REGISTER_GROUP ?? "") !== "") return true;
  const files = await Promise.all([BUNDLE_FILE, MESH_TOKEN].map((file) => isFile(join(baseDir, file))));
  return files.includes(true);
}

const isFile = (path: string): Promise<boolean> =>
  stat(path).then(
    (found) => found.isFile(),
    () => false,
  );

/** In a pod nothing can be written but into volumes, of which injection gives one for data; it outlives the container. */
function pathsOf(baseDir: string, settings: AgentSettings, inPod: boolean): AgentPaths {
  const work = join(baseDir, "etc/istio/proxy");
  const given = (path: string): string => (isAbsolute(path) ? path : join(baseDir, path));
  const copies = settings.fileMountedCerts ? "etc/certs" : settings.outputCerts;
  return {
    work,
    xdsSocket: join(work, "XDS"),
    sdsSocket: join(baseDir, "var/run/secrets/workload-spiffe-uds", settings.identitySocket),
    filesSocket: join(work, "SDS"),
    credentialSocket: join(baseDir, "var/run/secrets/credential-uds/socket"),
    lastGood: join(baseDir, `var/lib/istio/${inPod ? "data" : "envoy"}/last-good`),
    certificates: copies === "" ? undefined : given(copies),
    grpcBootstrap: given(settings.grpcBootstrap),
  };
}

/** Lines `key="value"` of the downward API; nothing outside a pod. */
async function podInfo(file: string): Promise<Readonly<Record<string, string>>> {
  const text = await readFile(file, "utf8").catch(() => "");
  const entries = text.split("\n").flatMap((line) => {
    const [, key, value] = /^([^=]+)=(".*")$/.exec(line) ?? [];
    return key === undefined || value === undefined ? [] : [[key, unquoted(value)]];
  });
  return Object.fromEntries(entries);
}

function unquoted(text: string): string {
  try {
    return String(JSON.parse(text));
  } catch {
    return text.slice(1, -1);
  }
}
