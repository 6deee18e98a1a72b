import { injectPod } from "./inject-pod.ts";
import { DEFAULT_INJECTION } from "./injection-config.ts";
import type { InjectionSettings } from "./injection-request.ts";
import { type Fields, isFields } from "./pod.ts";
import { decideInjection } from "./policy.ts";
import { forgetSharedUser, proxyUser } from "./proxy-user.ts";
import { PodShapeError, readPod } from "./read-pod.ts";
import { type WorkloadObject, workloadObject } from "./workload-object.ts";

/** Where an object that is injected from a file is to run. */
export interface ObjectContext {
  /** Namespace of objects that name none. */
  readonly namespace: string;
  readonly native: boolean;
  /** Annotations of the namespace, where the platform is OpenShift. */
  readonly openShift?: Readonly<Record<string, string>>;
}

/** What became of an object. */
export interface InjectedObject {
  /** As it is now; the same one where nothing was done. */
  readonly object: unknown;
  /** Objects that were left alone although they make pods, and why; and what in others has no effect: a sentence each. */
  readonly notes: readonly string[];
  /** Why it could not be done: a sentence each. */
  readonly faults: readonly string[];
}

/** Injects whatever makes pods: a pod, a workload, or a list of those. Everything else comes back as it is. */
export function injectObject(object: unknown, settings: InjectionSettings, context: ObjectContext): InjectedObject {
  if (isFields(object) && object.kind === "List" && Array.isArray(object.items)) {
    const { items: before } = object as { readonly items: readonly unknown[] };
    const items = before.map((item) => injectOne(item, settings, context));
    const isChanged = items.some((item, index) => item.object !== before[index]);
    return {
      object: isChanged ? { ...object, items: items.map((item) => item.object) } : object,
      notes: items.flatMap(({ notes }) => notes),
      faults: items.flatMap(({ faults }) => faults),
    };
  }
  return injectOne(object, settings, context);
}

function injectOne(object: unknown, settings: InjectionSettings, context: ObjectContext): InjectedObject {
  try {
    const workload = workloadObject(object);
    return workload === undefined ? { object, notes: [], faults: [] } : injectWorkload(object, workload, { settings, context });
  } catch (error) {
    if (!(error instanceof PodShapeError)) throw error;
    return { object, notes: [], faults: [`${titleOf(object)}: ${error.message}`] };
  }
}

interface Place {
  readonly settings: InjectionSettings;
  readonly context: ObjectContext;
}

function injectWorkload(object: unknown, workload: WorkloadObject, { settings, context }: Place): InjectedObject {
  const pod = readPod(workload.pod);
  const namespace = pod.metadata.namespace ?? (workload.owner.namespace || context.namespace);
  const title = `${workload.kind} ${workload.name}`;
  // Who names a file wants it injected, whatever the webhook does by itself: only what the pod says of itself counts.
  const decision = decideInjection(pod, namespace, DEFAULT_INJECTION);
  if (!decision.inject) return { object, notes: [`${title} is not injected: ${decision.reason}`], faults: [] };
  const { native, openShift } = context;
  if (openShift !== undefined) forgetSharedUser(pod);
  const user = proxyUser(openShift);
  const result = injectPod({ pod, namespace, owner: workload.owner, native, proxyConfigs: [], variables: {}, user }, settings);
  if ("faults" in result) return { object, notes: [], faults: result.faults.map((fault) => `${title}: ${fault}`) };
  return { object: workload.withPod(result.pod), notes: result.warnings.map((warning) => `${title}: ${warning}`), faults: [] };
}

function titleOf(object: unknown): string {
  const { kind, metadata } = isFields(object) ? object : ({} as Fields);
  return `${String(kind)} ${isFields(metadata) ? String(metadata.name ?? metadata.generateName ?? "") : ""}`.trim();
}
