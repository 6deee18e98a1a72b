import type { MessageInitShape } from "@bufbuild/protobuf";
import { durationOfMs } from "../../base/duration.ts";
import { ApiConfigSource_ApiType, ApiVersion, type ConfigSourceSchema } from "../../gen/envoy/config/core/v3/config_source_pb.js";
import { SdsSecretConfigSchema } from "../../gen/envoy/extensions/transport_sockets/tls/v3/secret_pb.js";
import type { LocalServer } from "../../model/proxy.ts";
import { encodedOnce } from "../../wire/encode.ts";

/** The workload's own certificate and the mesh's roots, both served by the agent beside the proxy. */
export const WORKLOAD_CERTIFICATE = "default";
export const MESH_ROOTS = "ROOTCA";

/** In place of the path of a CA bundle: the one of the operating system the proxy runs on. */
export const SYSTEM = "system";

/** Beginnings of the names of files on the machine of a proxy that has no agent. */
export const OWN_CERTIFICATE = "local-cert://";
export const OWN_ROOTS = "local-root://";
/** Between the two paths of a certificate. */
export const PATH_SEPARATOR = "~";

/**
 * SDS name of a certificate and key that lie in files on the proxy's machine. An agent reads and follows them; where there is none, the
 * control plane answers with the paths, and Envoy reads and follows the files itself.
 */
export const fileCertificate = (certificate: string, key: string, server: LocalServer): SecretName =>
  ofFile(server === false ? OWN_CERTIFICATE : "file-cert:", `${certificate}${PATH_SEPARATOR}${key}`, server);

/** SDS name of a CA bundle in a file on the proxy's machine. */
export const fileRoots = (path: string, server: LocalServer): SecretName =>
  ofFile(server === false ? OWN_ROOTS : "file-root:", path, server);

function ofFile(kind: string, path: string, server: LocalServer): SecretName {
  const name = `${kind}${path}`;
  return server === "aside" ? { name, cluster: FILES_CLUSTER, authority: "" } : name;
}

/** The cluster of Istio's bootstrap that leads to its agent where somebody else serves the workload's certificate. */
const FILES_CLUSTER = "sds-files-grpc";

/** Paths of a certificate, its key and the roots to trust; the last may be empty. */
export interface OwnFiles {
  readonly chain: string;
  readonly key: string;
  readonly roots: string;
}

/** SDS names of a server's own certificate and of the roots its callers are verified by: the mesh's, as far as no files stand in for them. */
export const ownNames = (
  files: OwnFiles | undefined,
  server: LocalServer,
): { readonly certificate: SecretName; readonly roots: SecretName } => ({
  certificate: files === undefined ? WORKLOAD_CERTIFICATE : fileCertificate(files.chain, files.key, server),
  roots: files === undefined || files.roots === "" ? MESH_ROOTS : fileRoots(files.roots, server),
});

/** Whether files are enough for mutual TLS where no agent serves the rest. */
export const standsAlone = (files: OwnFiles | undefined): boolean => files !== undefined && files.roots !== "";

/** A secret that another SDS server has, and the cluster that leads there. */
export interface ProvidedSecret {
  readonly name: string;
  readonly cluster: string;
  readonly authority: string;
}

/** How a secret is asked for: by its name alone, which says where it is, or of the server that has it. */
export type SecretName = string | ProvidedSecret;

/** Who has the credentials whose names begin with `sds://`; where nobody does, they are the control plane's like all others. */
export interface CredentialHolder {
  /** A server on the proxy's machine (node metadata `credential`). It goes before the other, and is asked by the whole name. */
  readonly socket: boolean;
  /** A server that the mesh names. */
  readonly provider?: Omit<ProvidedSecret, "name">;
}

/** The cluster that leads to the server on the proxy's machine, and the socket that server has. */
export const CREDENTIAL_CLUSTER = "sds-external";
export const CREDENTIAL_SOCKET = "./var/run/secrets/credential-uds/socket";

const ELSEWHERE = "sds://";
/** In place of a name: the proxy's own certificate of the mesh. */
const OWN = "builtin://";

/** SDS name of a credential. One that already says where it lies is left alone; without a place it is the control plane's. */
export function credential(name: string, { socket, provider }: CredentialHolder): SecretName {
  if (name === OWN) return WORKLOAD_CERTIFICATE;
  if (!name.startsWith(ELSEWHERE)) return ofControlPlane(name);
  const bare = name.slice(ELSEWHERE.length);
  if (socket) return { name, cluster: CREDENTIAL_CLUSTER, authority: "" };
  return provider === undefined ? ofControlPlane(bare) : { name: bare, ...provider };
}

const ofControlPlane = (name: string): string => (name.includes("://") ? name : `kubernetes://${name}`);

/** SDS name of the CA that belongs to a credential: Istio looks for it beside the certificate, under the same name with `-cacert`. */
export const credentialRoots = (name: string, holder: CredentialHolder): SecretName =>
  name === OWN ? MESH_ROOTS : credential(name.endsWith("-cacert") ? name : `${name}-cacert`, holder);

/**
 * Envoy's default would wait 15 s for a secret nobody serves, and 0 would wait for ever: a listener or cluster that names it
 * should come up (and refuse connections) soon, so that the rest of the configuration is not held back.
 */
const FETCH_TIMEOUT_MS = 5_000;

/** How a secret is fetched is decided by its name: what has a scheme comes from the control plane over ADS, all else from the agent's socket. */
export function sdsSecret(secret: SecretName): SecretInit {
  if (typeof secret !== "string") return { name: secret.name, sdsConfig: fromServer(secret) };
  return OF_EVERY_WORKLOAD.get(secret) ?? { name: secret, sdsConfig: secret.includes("://") ? fromControlPlane() : fromServer(AGENT) };
}

type SecretInit = MessageInitShape<typeof SdsSecretConfigSchema>;

const AGENT: Omit<ProvidedSecret, "name"> = { cluster: "sds-grpc", authority: "" };

const fromControlPlane = (): ConfigSourceInit => ({
  configSourceSpecifier: { case: "ads", value: {} },
  resourceApiVersion: ApiVersion.V3,
  initialFetchTimeout: durationOfMs(FETCH_TIMEOUT_MS),
});

const fromServer = ({ cluster, authority }: Omit<ProvidedSecret, "name">): ConfigSourceInit => ({
  configSourceSpecifier: {
    case: "apiConfigSource",
    value: {
      apiType: ApiConfigSource_ApiType.GRPC,
      transportApiVersion: ApiVersion.V3,
      setNodeOnFirstMessageOnly: true,
      grpcServices: [{ targetSpecifier: { case: "envoyGrpc", value: { clusterName: cluster, authority } } }],
    },
  },
  resourceApiVersion: ApiVersion.V3,
  initialFetchTimeout: durationOfMs(FETCH_TIMEOUT_MS),
});

type ConfigSourceInit = MessageInitShape<typeof ConfigSourceSchema>;

/** The secrets that nearly every context names. */
const OF_EVERY_WORKLOAD: ReadonlyMap<string, SecretInit> = new Map(
  [WORKLOAD_CERTIFICATE, MESH_ROOTS].map((name) => [name, encodedOnce(SdsSecretConfigSchema, { name, sdsConfig: fromServer(AGENT) })]),
);
