import { ANNOTATION, parseFlag } from "./annotations.ts";
import { type Container, type Fields, findProxy, isFields, type Pod, PROXY_CONTAINER } from "./pod.ts";

const PROBERS = "ISTIO_KUBE_APP_PROBERS";
const HTTP_FIELDS = ["path", "port", "host", "scheme", "httpHeaders"];

/** The probes and hooks of a container that can be sent through the agent, and their paths there. */
const PROBES: readonly (readonly [name: string, path: string])[] = [
  ["readinessProbe", "readyz"],
  ["livenessProbe", "livez"],
  ["startupProbe", "startupz"],
];
const HOOKS: readonly (readonly [name: string, path: string])[] = [
  ["preStop", "prestopz"],
  ["postStart", "poststartz"],
];

export interface ProbeOptions {
  /** What holds where the pod says nothing. */
  readonly rewrite: boolean;
  /** Port of the agent. */
  readonly agentPort: number;
}

/**
 * Sends the probes of the application through the agent: the kubelet has no certificate, so once mutual TLS is demanded, its own requests would be
 * refused. What they really ask goes to the agent in an environment variable. Changes the pod.
 */
export function rewriteProbes(pod: Pod, options: ProbeOptions): void {
  const { annotations = {} } = pod.metadata;
  const proxy = findProxy(pod);
  const wanted = parseFlag(annotations[ANNOTATION.rewriteProbes] ?? "") ?? options.rewrite;
  if (proxy === undefined || !wanted) return;
  const containers = [...(pod.spec.initContainers ?? []), ...(pod.spec.containers ?? [])].filter(({ name }) => name !== PROXY_CONTAINER);
  const probers: Record<string, Fields> = {};
  for (const container of containers) Object.assign(probers, probersOf(container, options.agentPort));
  if (Object.keys(probers).length > 0) proxy.env = withProbers(proxy.env ?? [], probers);
  const port = Number(annotations[ANNOTATION.statusPort] ?? options.agentPort);
  for (const container of containers) redirect(container, port);
}

/** Those of an earlier injection stay: the probes have been rewritten then, and only the variable knows what they were. */
function withProbers(env: NonNullable<Container["env"]>, probers: Readonly<Record<string, Fields>>): NonNullable<Container["env"]> {
  const before = env.find(({ name }) => name === PROBERS);
  const merged = { ...probers, ...jsonOf(before?.value) };
  const sorted = Object.fromEntries(Object.entries(merged).sort(([a], [b]) => (a < b ? -1 : 1)));
  return [...env.filter((one) => one !== before), { name: PROBERS, value: JSON.stringify(sorted) }];
}

function probersOf(container: Container, agentPort: number): Record<string, Fields> {
  const ports = new Map((container.ports ?? []).flatMap(({ name, containerPort }) => (name === undefined ? [] : [[name, containerPort]])));
  const found: Record<string, Fields> = {};
  const note = (probe: unknown, path: string, isHook: boolean): void => {
    const isSent = isFields(probe) && isFields(probe.httpGet) && probe.httpGet.path === path;
    const prober = isFields(probe) && !isSent ? proberOf(probe, { ports, agentPort, isHook }) : undefined;
    if (prober !== undefined) found[path] = prober;
  };
  for (const [name, path] of PROBES) note(container[name], pathOf(container, path, false), false);
  for (const [name, path] of HOOKS) note(container.lifecycle?.[name], pathOf(container, path, true), true);
  return found;
}

const pathOf = ({ name }: Container, path: string, isHook: boolean): string => `/app-${isHook ? "lifecycle" : "health"}/${name}/${path}`;

interface ProberContext {
  readonly ports: ReadonlyMap<string | undefined, number | undefined>;
  readonly agentPort: number;
  readonly isHook: boolean;
}

/** One probe as the agent is told it, with named ports looked up; undefined for one that needs no agent or has been sent there already. */
function proberOf(probe: Fields, { ports, agentPort, isHook }: ProberContext): Fields | undefined {
  const timeout = !isHook && probe.timeoutSeconds ? { timeoutSeconds: probe.timeoutSeconds } : {};
  for (const kind of ["httpGet", "tcpSocket"] as const) {
    const action = probe[kind];
    if (!isFields(action)) continue;
    const port = typeof action.port === "string" && !/^\d+$/.test(action.port) ? ports.get(action.port) : Number(action.port);
    if (port === undefined || port === agentPort) return undefined;
    const known = HTTP_FIELDS.filter((field) => action[field] !== undefined).map((field) => [
      field,
      field === "port" ? port : action[field],
    ]);
    return { [kind]: Object.fromEntries(known), ...timeout };
  }
  return isFields(probe.grpc) && !isHook ? { grpc: probe.grpc, ...timeout } : undefined;
}

function redirect(container: Container, port: number): void {
  for (const [name, path] of PROBES) {
    const probe = container[name];
    if (isFields(probe)) container[name] = redirected(probe, { path: pathOf(container, path, false), port });
  }
  const { lifecycle } = container;
  if (lifecycle === undefined || lifecycle === null) return;
  const hooks = HOOKS.filter(([name]) => isFields(lifecycle[name]));
  for (const [name, path] of hooks) {
    const hook = lifecycle[name] as Fields;
    if (hook.grpc === undefined) lifecycle[name] = redirected(hook, { path: pathOf(container, path, true), port });
  }
}

function redirected(probe: Fields, to: { readonly path: string; readonly port: number }): Fields {
  const { httpGet, tcpSocket, grpc, ...rest } = probe;
  if (!isFields(httpGet)) return tcpSocket === undefined && grpc === undefined ? probe : { ...rest, httpGet: to };
  return { ...rest, httpGet: { ...httpGet, ...to, ...(httpGet.scheme === "HTTPS" && { scheme: "HTTP" }) } };
}

function jsonOf(text: string | undefined): Record<string, Fields> {
  try {
    const value: unknown = JSON.parse(text ?? "{}");
    return isFields(value) ? (value as Record<string, Fields>) : {};
  } catch {
    return {};
  }
}
