import { Secret } from "../base/secret.ts";
import type { CaTexts } from "../ca/ca-material.ts";
import type { KubeObject, ResourceType } from "../kube/resource-type.ts";

/** Secrets, as the API server calls them. */
export const SECRETS: ResourceType = { group: "", version: "v1", plural: "secrets", namespaced: true };

/** Where a CA is kept in the namespace of the control plane, under Istio's names: what a user plugged in first, then what a control plane made for itself. */
export const CA_SECRETS = ["cacerts", "istio-ca-secret"] as const;
/** A Secret that may hold the CA. */
export type CaSecretName = (typeof CA_SECRETS)[number];

/** The Secret that is made where there is none. */
export const MADE_SECRET: CaSecretName = "istio-ca-secret";

/** Keys of a Secret of type `kubernetes.io/tls`, which may hold a CA as well. */
const TLS_KEYS = { certificate: "tls.crt", key: "tls.key", roots: "ca.crt" } as const;

/**
 * The CA that a Secret holds, in Istio's four entries or in those of a TLS Secret, and what it revoked. As in Istio, a chain may be missing, and a certificate without roots beside
 * it is its own root.
 */
export function caTextsOf({ data }: KubeObject): Secret<CaTexts> {
  const entries = (typeof data === "object" && data !== null ? data : {}) as Readonly<Record<string, unknown>>;
  const text = (key: string): string => {
    const value = entries[key];
    return typeof value === "string" ? Buffer.from(value, "base64").toString("utf8") : "";
  };
  const isTls = entries[TLS_KEYS.certificate] !== undefined;
  const certificate = text(isTls ? TLS_KEYS.certificate : "ca-cert.pem");
  return new Secret({
    "ca-cert.pem": certificate,
    "ca-key.pem": text(isTls ? TLS_KEYS.key : "ca-key.pem"),
    "cert-chain.pem": isTls ? "" : text("cert-chain.pem"),
    "root-cert.pem": text(isTls ? TLS_KEYS.roots : "root-cert.pem") || certificate,
    ...(entries["ca-crl.pem"] !== undefined && { "ca-crl.pem": text("ca-crl.pem") }),
  });
}

/** The Secret of a root that was made here: type and entries are Istio's, so that it can take over, and we from it. */
export function rootSecret(namespace: string, texts: Secret<CaTexts>): KubeObject {
  const { "ca-cert.pem": certificate, "ca-key.pem": key } = texts.reveal();
  const data = { "ca-cert.pem": certificate, "ca-key.pem": key, "cert-chain.pem": "", "key.pem": "", "root-cert.pem": certificate };
  return {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: MADE_SECRET, namespace },
    type: "istio.io/ca-root",
    data: Object.fromEntries(Object.entries(data).map(([name, text]) => [name, Buffer.from(text).toString("base64")])),
  };
}
