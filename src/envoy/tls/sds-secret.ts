import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import {
  ApiConfigSource_ApiType,
  ApiVersion,
  type ConfigSource,
  ConfigSourceSchema,
} from "../../gen/envoy/config/core/v3/config_source_pb.js";
import { type SdsSecretConfig, SdsSecretConfigSchema } from "../../gen/envoy/extensions/transport_sockets/tls/v3/secret_pb.js";

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
export const fileCertificate = (certificate: string, key: string, agent: boolean): string =>
  `${agent ? "file-cert:" : OWN_CERTIFICATE}${certificate}${PATH_SEPARATOR}${key}`;

/** SDS name of a CA bundle in a file on the proxy's machine. */
export const fileRoots = (path: string, agent: boolean): string => `${agent ? "file-root:" : OWN_ROOTS}${path}`;

/** SDS name of a credential held by the control plane; a name that already says where it lies is left alone. */
export const credential = (name: string): string => (name.includes("://") ? name : `kubernetes://${name}`);

/** SDS name of the CA that belongs to a credential: Istio looks for it beside the certificate, under the same name with `-cacert`. */
export const credentialRoots = (name: string): string => {
  const full = credential(name);
  return full.endsWith("-cacert") ? full : `${full}-cacert`;
};

/**
 * Envoy's default would wait 15 s for a secret nobody serves, and 0 would wait for ever: a listener or cluster that names it
 * should come up (and refuse connections) soon, so that the rest of the configuration is not held back.
 */
const FETCH_TIMEOUT_MS = 5_000;

/** How a secret is fetched is decided by its name: what has a scheme comes from the control plane over ADS, all else from the agent's socket. */
export function sdsSecret(name: string): SdsSecretConfig {
  return create(SdsSecretConfigSchema, { name, sdsConfig: name.includes("://") ? fromControlPlane() : fromAgent() });
}

const fromControlPlane = (): ConfigSource =>
  create(ConfigSourceSchema, {
    configSourceSpecifier: { case: "ads", value: {} },
    resourceApiVersion: ApiVersion.V3,
    initialFetchTimeout: durationFromMs(FETCH_TIMEOUT_MS),
  });

const fromAgent = (): ConfigSource =>
  create(ConfigSourceSchema, {
    configSourceSpecifier: {
      case: "apiConfigSource",
      value: {
        apiType: ApiConfigSource_ApiType.GRPC,
        transportApiVersion: ApiVersion.V3,
        setNodeOnFirstMessageOnly: true,
        grpcServices: [{ targetSpecifier: { case: "envoyGrpc", value: { clusterName: "sds-grpc" } } }],
      },
    },
    resourceApiVersion: ApiVersion.V3,
    initialFetchTimeout: durationFromMs(FETCH_TIMEOUT_MS),
  });
