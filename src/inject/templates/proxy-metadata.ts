import { ANNOTATION, LABEL } from "../annotations.ts";
import { appContainers, type Fields } from "../pod.ts";
import { hasAnnotation, type TemplateInput } from "../template-input.ts";

const LONGEST_LABEL = 63;

/** Labels that say which service, in telemetry, a workload is. */
export function canonicalLabels({ pod, owner }: TemplateInput): Record<string, string> {
  const labels = pod.metadata.labels ?? {};
  const name = labels[LABEL.canonicalName] || labels["app.kubernetes.io/name"] || labels.app || owner.name;
  return {
    [LABEL.canonicalName]: name.slice(0, LONGEST_LABEL).replace(/^[-_.]+|[-_.]+$/g, ""),
    [LABEL.canonicalRevision]: labels[LABEL.canonicalRevision] || labels["app.kubernetes.io/version"] || labels.version || "latest",
  };
}

/** Annotations of every injected pod: its revision, and that kubectl means the application, not the proxy. */
export function commonAnnotations(input: TemplateInput): Fields {
  const [first] = appContainers(input.pod);
  const own = (name: string): Fields => (first === undefined || hasAnnotation(input, name) ? {} : { [name]: first.name });
  return {
    [ANNOTATION.revision]: input.revision || "default",
    ...own(ANNOTATION.defaultLogsContainer),
    ...own(ANNOTATION.defaultContainer),
  };
}
