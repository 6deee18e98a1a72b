import { formatPath, type Problem } from "../config/problem.ts";
import { readObject } from "../config/read-object.ts";
import type { AdmissionAnswer, AdmissionRequest } from "./admission-review.ts";

/** What became of a request, for those who count. */
export interface Judgement {
  readonly answer: AdmissionAnswer;
  /** Why it was refused: the code of the first problem; undefined where it was not. */
  readonly reason: string | undefined;
}

/** Groups of Istio's own kinds; about others we have nothing to say. */
const GROUPS = ["networking.istio.io", "security.istio.io", "telemetry.istio.io", "extensions.istio.io"];
const MOST_PROBLEMS = 10;

/**
 * Judges an object as the store would judge it later, so that what is let in is used. All that is wrong is said at once, each with the field and what
 * to do; what is merely questionable comes back as warnings. Kinds and groups nobody knows pass: they may belong to a newer control plane.
 */
export function validateObject({ operation, kind, namespace, object }: AdmissionRequest): Judgement {
  if ((operation !== "CREATE" && operation !== "UPDATE") || !GROUPS.includes(kind.group))
    return { answer: { allowed: true }, reason: undefined };
  const { problems } = readObject({
    origin: { source: "admission" },
    slot: "request",
    content: object,
    ...(namespace !== "" && { defaultNamespace: namespace }),
  });
  const errors = problems.filter(({ level }) => level === "error");
  const warnings = problems.filter(({ level }) => level === "warning").map(sentence);
  const [first] = errors;
  if (first === undefined) return { answer: { allowed: true, warnings }, reason: undefined };
  const more = errors.length > MOST_PROBLEMS ? `; and ${errors.length - MOST_PROBLEMS} more` : "";
  const message = `configuration is invalid: ${errors.slice(0, MOST_PROBLEMS).map(sentence).join("; ")}${more}`;
  return { answer: { allowed: false, message, warnings }, reason: first.code };
}

const sentence = ({ path, message, code }: Problem): string => `${path.length === 0 ? "" : `${formatPath(path)}: `}${message} [${code}]`;
