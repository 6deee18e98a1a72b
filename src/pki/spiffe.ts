/** Who a workload is: a service account of a namespace in a trust domain. */
export interface WorkloadIdentity {
  readonly trustDomain: string;
  readonly namespace: string;
  readonly serviceAccount: string;
}

const LONGEST_ID = 2048;
const LONGEST_TRUST_DOMAIN = 255;
const TRUST_DOMAIN = /^[a-z0-9._-]+$/;
const SEGMENT = /^[A-Za-z0-9._-]+$/;

/** Whether a text may be a trust domain (https://spiffe.io, SPIFFE-ID section 2.1). */
export const isTrustDomain = (text: string): boolean => text.length <= LONGEST_TRUST_DOMAIN && TRUST_DOMAIN.test(text);

/** Whether a text may be one part of the path of an id: what is not cannot become a namespace or a service account. */
export const isPathSegment = (text: string): boolean => SEGMENT.test(text) && text !== "." && text !== "..";

/** `spiffe://<trust domain>/ns/<namespace>/sa/<service account>`, Istio's form. */
export const formatSpiffeId = ({ trustDomain, namespace, serviceAccount }: WorkloadIdentity): string =>
  `spiffe://${trustDomain}/ns/${namespace}/sa/${serviceAccount}`;

/** Reads an id of Istio's form; undefined for any other text. Exactly one spelling is taken, so equal ids are equal texts. */
export function parseSpiffeId(text: string): WorkloadIdentity | undefined {
  if (text.length > LONGEST_ID || !text.startsWith("spiffe://")) return undefined;
  const [trustDomain = "", ns, namespace = "", sa, serviceAccount = "", ...rest] = text.slice("spiffe://".length).split("/");
  if (ns !== "ns" || sa !== "sa" || rest.length > 0) return undefined;
  return identityFault({ trustDomain, namespace, serviceAccount }) === undefined ? { trustDomain, namespace, serviceAccount } : undefined;
}

/** Why these words cannot be an identity; undefined where they can. */
export function identityFault({ trustDomain, namespace, serviceAccount }: WorkloadIdentity): string | undefined {
  if (!isTrustDomain(trustDomain)) return "the trust domain is malformed";
  if (!isPathSegment(namespace)) return "the namespace is malformed";
  if (!isPathSegment(serviceAccount)) return "the service account is malformed";
  return formatSpiffeId({ trustDomain, namespace, serviceAccount }).length > LONGEST_ID ? "the identity is too long" : undefined;
}

/** Whether two stand for the same workload. */
export const sameIdentity = (a: WorkloadIdentity, b: WorkloadIdentity): boolean => formatSpiffeId(a) === formatSpiffeId(b);
