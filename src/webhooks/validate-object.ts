import type { Registry } from "@bufbuild/protobuf";
import { placeOf } from "../config/checks/place.ts";
import type { Report } from "../config/kind-def.ts";
import { checkTypedConfigs } from "../config/kinds/envoy-filter/check-typed-configs.ts";
import type { ConfigObject } from "../config/object.ts";
import { formatPath, levelOf, type Problem } from "../config/problem.ts";
import { readObject } from "../config/read-object.ts";
import type { EnvoyFilter } from "../gen/istio/networking/v1alpha3/envoy_filter_pb.js";
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
const ENVOY_FILTER =
  "an EnvoyFilter changes what this version makes for Envoy, and another may make it otherwise: prefer a kind of its own where there is one, and try upgrades";

/**
 * Judges an object as the store would judge it later, so that what is let in is used. All that is wrong is said at once, each with the field and what
 * to do; what is merely questionable comes back as warnings. Kinds and groups nobody knows pass: they may belong to a newer control plane.
 * With `registry`, the descriptors of Envoy's extensions, what an EnvoyFilter brings is looked into, too.
 */
export function validateObject({ operation, kind, namespace, object }: AdmissionRequest, registry?: Registry): Judgement {
  if ((operation !== "CREATE" && operation !== "UPDATE") || !GROUPS.includes(kind.group))
    return { answer: { allowed: true }, reason: undefined };
  const read = readObject({
    origin: { source: "admission", isServed: true },
    slot: "request",
    content: object,
    ...(namespace !== "" && { defaultNamespace: namespace }),
  });
  const problems = [...read.problems, ...(registry === undefined ? [] : contentProblems(read.object, registry))];
  // The API server knows the kind and its version: where they are newer than we are, they are for others to judge.
  const errors = problems.filter(({ level, code }) => level === "error" && code !== "kind.version" && code !== "kind.absent");
  const warnings = [
    ...problems.filter((problem) => !errors.includes(problem)).map(sentence),
    ...(kind.kind === "EnvoyFilter" ? [ENVOY_FILTER] : []),
  ];
  const [first] = errors;
  if (first === undefined) return { answer: { allowed: true, warnings }, reason: undefined };
  const more = errors.length > MOST_PROBLEMS ? `; and ${errors.length - MOST_PROBLEMS} more` : "";
  const message = `configuration is invalid: ${errors.slice(0, MOST_PROBLEMS).map(sentence).join("; ")}${more}`;
  return { answer: { allowed: false, message, warnings }, reason: first.code };
}

/** Faults within the configurations that an EnvoyFilter brings: the store finds them when it applies the patches, which is too late to tell who wrote them. */
function contentProblems(object: ConfigObject | undefined, registry: Registry): readonly Problem[] {
  if (object?.kind !== "EnvoyFilter") return [];
  const found: Problem[] = [];
  const report: Report = (code, path, message) => found.push({ code, level: levelOf(code), object, path, message });
  checkTypedConfigs(object.spec as EnvoyFilter, registry, placeOf(report, ["spec"]));
  return found;
}

const sentence = ({ path, message, code }: Problem): string => `${path.length === 0 ? "" : `${formatPath(path)}: `}${message} [${code}]`;
