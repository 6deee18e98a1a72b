import type { SigningOrder } from "../ca/certificate-api.ts";
import type { KubeObject } from "../kube/resource-type.ts";

/** What became of a CertificateSigningRequest. */
export type Decision =
  | { readonly is: "pending" | "approved" | "gone" }
  | { readonly is: "denied" | "failed"; readonly reason: string }
  | { readonly is: "signed"; readonly certificate: string };

/** The API takes no shorter lives. */
const LEAST_SECONDS = 600;
const MOST_SECONDS = 2 ** 31 - 1;
const LONGEST_REASON = 300;

interface RequestInput {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly order: SigningOrder;
}

/** The object that asks for a certificate. */
export function requestObject({ name, labels, order }: RequestInput): KubeObject {
  const { csr, signer, uses, ttlMs } = order;
  const seconds = Math.min(Math.max(Math.round(ttlMs / 1_000), LEAST_SECONDS), MOST_SECONDS);
  return {
    apiVersion: "certificates.k8s.io/v1",
    kind: "CertificateSigningRequest",
    metadata: { name, labels },
    spec: {
      request: Buffer.from(csr).toString("base64"),
      signerName: signer,
      usages: uses,
      ...(ttlMs > 0 && { expirationSeconds: seconds }),
    },
  };
}

/** The same with our approval, for its sub-resource `approval`. */
export function approvalOf(object: KubeObject): KubeObject {
  const status = statusOf(object);
  const approval = {
    type: "Approved",
    status: "True",
    reason: "AskedByIstiod",
    message: "istiod asked for it, and may approve requests for this signer",
  };
  return { ...object, status: { ...status, conditions: [...conditionsOf(status), approval] } };
}

/** Reads what was decided. A certificate counts before anything else: once there is one, nothing changes any more. */
export function decisionOf(object: KubeObject): Decision {
  const status = statusOf(object);
  if (typeof status.certificate === "string" && status.certificate !== "")
    return { is: "signed", certificate: Buffer.from(status.certificate, "base64").toString("utf8") };
  const conditions = conditionsOf(status);
  const said = (type: string): Condition | undefined => conditions.find((one) => one.type === type);
  const [denied, failed] = [said("Denied"), said("Failed")];
  if (denied !== undefined) return { is: "denied", reason: reasonOf(denied) };
  if (failed !== undefined) return { is: "failed", reason: reasonOf(failed) };
  return { is: said("Approved") === undefined ? "pending" : "approved" };
}

type Fields = Readonly<Record<string, unknown>>;

interface Condition {
  readonly type?: unknown;
  readonly reason?: unknown;
  readonly message?: unknown;
}

const statusOf = ({ status }: KubeObject): Fields => (typeof status === "object" && status !== null ? (status as Fields) : {});

const conditionsOf = ({ conditions }: Fields): readonly Condition[] =>
  (Array.isArray(conditions) ? (conditions as readonly unknown[]) : []).filter(
    (one): one is Condition => typeof one === "object" && one !== null,
  );

const reasonOf = ({ reason, message }: Condition): string =>
  [reason, message]
    .filter((part) => typeof part === "string" && part !== "")
    .join(": ")
    .slice(0, LONGEST_REASON);
