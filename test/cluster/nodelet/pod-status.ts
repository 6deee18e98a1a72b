import type { Container } from "./container.ts";
import { isSidecar, type Pod } from "./pod.ts";

/** All of a pod that its status tells. */
export interface PodView {
  readonly pod: Pod;
  /** Empty until it has one. */
  readonly address: string;
  readonly nodeAddress: string;
  readonly startTime: string;
  readonly init: readonly Container[];
  readonly main: readonly Container[];
  /** What its conditions were last, and since when. */
  readonly transitions: Map<string, Transition>;
  readonly now: string;
  /** Why its containers cannot be made yet. */
  readonly obstacle: string | undefined;
}

export interface Transition {
  readonly status: "True" | "False";
  readonly lastTransitionTime: string;
}

type Phase = "Pending" | "Running" | "Succeeded" | "Failed";

/** The status of a pod, as a strategic merge patch: conditions of others stay. */
export function podStatus(view: PodView): object {
  const { pod, address, nodeAddress, startTime, init, main } = view;
  const phase = phaseOf(view);
  const initialized = init.every((one) => (isSidecar(one.spec) ? one.started || phase === "Succeeded" : exitCode(one) === 0));
  const serving = [...init.filter(({ spec }) => isSidecar(spec)), ...main];
  const containersReady = phase === "Running" && serving.every(({ ready }) => ready);
  const gates = (pod.spec.readinessGates ?? []).every(({ conditionType }) =>
    pod.status?.conditions?.some(({ type, status }) => type === conditionType && status === "True"),
  );
  const unready = { reason: "ContainersNotReady", message: notReady(serving) };
  return {
    phase,
    startTime,
    hostIP: nodeAddress,
    hostIPs: [{ ip: nodeAddress }],
    ...(address !== "" && { podIP: address, podIPs: [{ ip: address }] }),
    conditions: [
      condition(view, "PodReadyToStartContainers", { holds: address !== "" }),
      condition(view, "Initialized", { holds: initialized }),
      condition(view, "ContainersReady", { holds: containersReady, otherwise: unready }),
      condition(view, "Ready", {
        holds: containersReady && gates,
        otherwise: containersReady ? { reason: "ReadinessGatesNotReady" } : unready,
      }),
    ],
    initContainerStatuses: init.map((one) => containerStatus(one, view)),
    containerStatuses: main.map((one) => containerStatus(one, view)),
  };
}

function phaseOf({ pod, init, main }: PodView): Phase {
  const failedInit = pod.spec.restartPolicy === "Never" && init.some((one) => !isSidecar(one.spec) && (exitCode(one) ?? 0) !== 0);
  if (failedInit) return "Failed";
  if (main.every(({ state }) => "waiting" in state && state.waiting.reason !== "CrashLoopBackOff")) return "Pending";
  const codes = main.map(exitCode);
  if (!codes.every((code) => code !== undefined)) return "Running";
  return codes.every((code) => code === 0) ? "Succeeded" : "Failed";
}

/** Undefined while a container has not ended for now. */
const exitCode = ({ state }: Container): number | undefined => ("terminated" in state ? state.terminated.exitCode : undefined);

const notReady = (containers: readonly Container[]): string =>
  `containers with unready status: [${containers.flatMap(({ ready, spec }) => (ready ? [] : [spec.name])).join(" ")}]`;

function condition(
  { transitions, now }: PodView,
  type: string,
  { holds, otherwise = {} }: { readonly holds: boolean; readonly otherwise?: object },
): object {
  const status = holds ? "True" : "False";
  const before = transitions.get(type);
  const transition = before?.status === status ? before : { status, lastTransitionTime: now };
  transitions.set(type, transition as Transition);
  return { type, ...transition, ...(holds ? { reason: null, message: null } : otherwise) };
}

function containerStatus({ spec, state, lastState, ready, started, restartCount }: Container, { pod, obstacle }: PodView): object {
  const creating = "waiting" in state && state.waiting.reason === "PodInitializing" && obstacle !== undefined;
  return {
    name: spec.name,
    image: spec.image,
    imageID: spec.image,
    containerID: `nodelet://${pod.metadata.uid}/${spec.name}/${restartCount}`,
    state: creating ? { waiting: { reason: "ContainerCreating", message: obstacle } } : state,
    // A fresh container has no last state, though it remembers its own end.
    ...(restartCount > 0 && lastState !== undefined && { lastState }),
    ready: ready || (exitCode({ state } as Container) === 0 && pod.spec.initContainers?.includes(spec) === true),
    started,
    restartCount,
  };
}
