import { isRecord } from "../config/parse/reading.ts";

/** What the API server asks about one object. */
export interface AdmissionRequest {
  readonly uid: string;
  /** CREATE, UPDATE, DELETE or CONNECT. */
  readonly operation: string;
  readonly kind: { readonly group: string; readonly version: string; readonly kind: string };
  readonly namespace: string;
  readonly name: string;
  readonly object: unknown;
}

/** A review that was read: in which version it is asked, and so to be answered. */
export interface AdmissionReview {
  readonly apiVersion: string;
  readonly request: AdmissionRequest;
}

/** What we say to it. */
export interface AdmissionAnswer {
  readonly allowed: boolean;
  /** What the user is told, where it is refused. */
  readonly message?: string;
  /** What the user is told anyway. */
  readonly warnings?: readonly string[];
  /** Steps of RFC 6902. */
  readonly patch?: readonly unknown[];
  /** Why it was decided so, for the audit log of the cluster. */
  readonly audit?: string;
}

const VERSIONS = ["admission.k8s.io/v1", "admission.k8s.io/v1beta1"];

/** Takes a body for a review, or says why it is none. */
export function readReview(body: unknown): AdmissionReview | string {
  if (!isRecord(body) || body.kind !== "AdmissionReview") return "the body is no AdmissionReview";
  const { apiVersion, request } = body;
  if (typeof apiVersion !== "string" || !VERSIONS.includes(apiVersion))
    return `AdmissionReview is read in ${VERSIONS.join(" and ")}, not ${JSON.stringify(String(apiVersion).slice(0, 60))}`;
  if (!isRecord(request) || typeof request.uid !== "string" || request.uid === "") return "the AdmissionReview has no request with a uid";
  const kind = isRecord(request.kind) ? request.kind : {};
  return {
    apiVersion,
    request: {
      uid: request.uid,
      operation: text(request.operation),
      kind: { group: text(kind.group), version: text(kind.version), kind: text(kind.kind) },
      namespace: text(request.namespace),
      name: text(request.name),
      object: request.object,
    },
  };
}

const text = (value: unknown): string => (typeof value === "string" ? value : "");

/** The API server cuts longer warnings, and drops them all beyond a total. */
const LONGEST_WARNING = 240;
const MOST_WARNINGS = 10;
const LONGEST_MESSAGE = 8_000;

/** The review that answers one. */
export function answerReview({ apiVersion, request }: AdmissionReview, answer: AdmissionAnswer): unknown {
  const { allowed, message, warnings = [], patch, audit } = answer;
  return {
    apiVersion,
    kind: "AdmissionReview",
    response: {
      uid: request.uid,
      allowed,
      ...(!allowed && { status: { code: 400, reason: "BadRequest", message: (message ?? "").slice(0, LONGEST_MESSAGE) } }),
      ...(warnings.length > 0 && { warnings: warnings.slice(0, MOST_WARNINGS).map((one) => one.slice(0, LONGEST_WARNING)) }),
      ...(audit !== undefined && { auditAnnotations: { decision: audit } }),
      ...(patch !== undefined &&
        patch.length > 0 && { patchType: "JSONPatch", patch: Buffer.from(JSON.stringify(patch)).toString("base64") }),
    },
  };
}
