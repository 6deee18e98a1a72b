/** Anything JSON can say. Fields of newer Kubernetes versions pass through untouched, so a pod is never reduced to what we know of it. */
export type Fields = Record<string, unknown>;

/** The parts of a pod that injection reads or writes. */
export interface Pod extends Fields {
  metadata: PodMetadata;
  spec: PodSpec;
}

export interface PodMetadata extends Fields {
  name?: string;
  generateName?: string;
  namespace?: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  ownerReferences?: Fields[];
}

export interface PodSpec extends Fields {
  containers?: Container[];
  initContainers?: Container[];
  volumes?: Named[];
  imagePullSecrets?: Named[];
  hostNetwork?: boolean;
  nodeName?: string;
  serviceAccountName?: string;
  dnsPolicy?: string;
}

export interface Named extends Fields {
  name: string;
}

export interface EnvVar extends Named {
  value?: string;
  valueFrom?: Fields;
}

export interface ContainerPort extends Fields {
  name?: string;
  containerPort?: number;
  protocol?: string;
}

export interface Container extends Named {
  image?: string;
  command?: string[];
  args?: string[];
  env?: EnvVar[];
  ports?: ContainerPort[];
  volumeMounts?: Fields[];
  securityContext?: Fields;
  resources?: Fields;
  lifecycle?: Fields;
  readinessProbe?: Fields;
  livenessProbe?: Fields;
  startupProbe?: Fields;
}

/** A pod in part, as a template gives it: put over the pod by the rules of a strategic merge. */
export interface PodOverlay {
  readonly metadata?: Fields;
  readonly spec?: Fields;
}

/** Names of the containers that injection adds: users overwrite them by these. */
export const PROXY_CONTAINER = "istio-proxy";
export const INIT_CONTAINER = "istio-init";
export const VALIDATION_CONTAINER = "istio-validation";

/** Whether a JSON value is an object. */
export const isFields = (value: unknown): value is Fields => typeof value === "object" && value !== null && !Array.isArray(value);

/** The container of that name, if there is one. */
export const findContainer = (containers: readonly Container[] | undefined, name: string): Container | undefined =>
  containers?.find((container) => container.name === name);

/** An init container as one of the others: those must not say when they are restarted. */
export const withoutRestartPolicy = ({ restartPolicy: _restartPolicy, ...rest }: Container): Container => rest;

/** The proxy of a pod, wherever it stands. */
export const findProxy = ({ spec }: Pod): Container | undefined =>
  findContainer(spec.containers, PROXY_CONTAINER) ?? findContainer(spec.initContainers, PROXY_CONTAINER);

/** Containers of the application: all but the proxy. */
export const appContainers = ({ spec }: Pod): readonly Container[] =>
  (spec.containers ?? []).filter((container) => container.name !== PROXY_CONTAINER);

/** The name of a pod for messages; one that a controller creates has none yet. */
export const podName = ({ name, generateName }: PodMetadata): string => name || (generateName ? `${generateName}*` : "");
