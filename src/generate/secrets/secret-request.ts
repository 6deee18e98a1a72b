import { ROOTS_SUFFIX } from "../../credentials/credential-source.ts";
import { OWN_CERTIFICATE, OWN_ROOTS, PATH_SEPARATOR } from "../../envoy/tls/index.ts";

/** What a secret's name asks for. */
export type SecretRequest = StoredRequest | FileRequest;

/** A credential that the control plane holds. */
export interface StoredRequest {
  readonly is: "certificate" | "roots";
  readonly in: "Secret" | "ConfigMap";
  readonly namespace: string;
  readonly name: string;
  /** The way of asking that can be granted across namespaces (Gateway API). */
  readonly grantable: boolean;
}

/** Files on the proxy's own machine: the answer is their paths. */
export type FileRequest =
  | { readonly is: "certificateFiles"; readonly chainFile: string; readonly keyFile: string }
  | { readonly is: "rootsFile"; readonly file: string; readonly revokedFile?: string };

/** Reads the name of a secret as Istio forms them. `namespace` is the asking proxy's, for names that say none. Undefined where it is no such name. */
export function readSecretName(name: string, namespace: string): SecretRequest | undefined {
  return readFileName(name) ?? readStoredName(name, namespace);
}

function readFileName(name: string): FileRequest | undefined {
  const scheme = [OWN_CERTIFICATE, OWN_ROOTS].find((one) => name.startsWith(one));
  if (scheme === undefined) return undefined;
  const [first = "", second, ...more] = name.slice(scheme.length).split(PATH_SEPARATOR);
  if (first === "" || second === "" || more.length > 0) return undefined;
  if (scheme === OWN_ROOTS) return { is: "rootsFile", file: first, ...(second !== undefined && { revokedFile: second }) };
  return second === undefined ? undefined : { is: "certificateFiles", chainFile: first, keyFile: second };
}

/** Namespaces and names are those of Kubernetes, so what comes from the network can be put into sentences. */
const STORED = /^(kubernetes|kubernetes-gateway|configmap):\/\/(?:([a-z0-9-]{1,63})\/)?([a-z0-9.-]{1,253})$/;

function readStoredName(text: string, own: string): StoredRequest | undefined {
  const [, scheme, namespace, name] = STORED.exec(text) ?? [];
  if (name === undefined || (scheme !== "kubernetes" && namespace === undefined)) return undefined;
  const configMap = scheme === "configmap";
  return {
    is: configMap || name.endsWith(ROOTS_SUFFIX) ? "roots" : "certificate",
    in: configMap ? "ConfigMap" : "Secret",
    namespace: namespace ?? own,
    name,
    grantable: scheme === "kubernetes-gateway",
  };
}
