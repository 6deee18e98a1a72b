import type { KubeObject } from "../kube-object.ts";

/** A Pod, as far as the nodelet honours it. */
export interface Pod extends KubeObject {
  readonly spec: PodSpec;
  readonly status?: {
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
    readonly phase?: string;
    readonly hostIP?: string;
    readonly podIP?: string;
    readonly containerStatuses?: readonly { readonly name: string; readonly ready: boolean; readonly restartCount: number }[];
  };
}

export interface PodSpec {
  readonly nodeName?: string;
  readonly hostname?: string;
  readonly subdomain?: string;
  readonly hostNetwork?: boolean;
  readonly dnsPolicy?: string;
  readonly dnsConfig?: {
    readonly nameservers?: readonly string[];
    readonly searches?: readonly string[];
    readonly options?: readonly { readonly name: string; readonly value?: string }[];
  };
  readonly hostAliases?: readonly { readonly ip: string; readonly hostnames?: readonly string[] }[];
  readonly serviceAccountName?: string;
  readonly schedulerName?: string;
  readonly schedulingGates?: readonly unknown[];
  readonly nodeSelector?: Readonly<Record<string, string>>;
  readonly affinity?: {
    readonly nodeAffinity?: {
      readonly requiredDuringSchedulingIgnoredDuringExecution?: {
        readonly nodeSelectorTerms: readonly { readonly matchFields?: readonly { readonly values?: readonly string[] }[] }[];
      };
    };
  };
  readonly restartPolicy?: "Always" | "OnFailure" | "Never";
  readonly terminationGracePeriodSeconds?: number;
  readonly readinessGates?: readonly { readonly conditionType: string }[];
  readonly securityContext?: SecurityContext & { readonly fsGroup?: number; readonly supplementalGroups?: readonly number[] };
  readonly initContainers?: readonly ContainerSpec[];
  readonly containers: readonly ContainerSpec[];
  readonly volumes?: readonly VolumeSpec[];
}

export interface SecurityContext {
  readonly runAsUser?: number;
  readonly runAsGroup?: number;
  readonly privileged?: boolean;
  readonly readOnlyRootFilesystem?: boolean;
  readonly allowPrivilegeEscalation?: boolean;
  readonly capabilities?: { readonly add?: readonly string[]; readonly drop?: readonly string[] };
}

export interface ContainerSpec {
  readonly name: string;
  readonly image: string;
  readonly command?: readonly string[];
  readonly args?: readonly string[];
  readonly workingDir?: string;
  readonly env?: readonly EnvVar[];
  readonly envFrom?: readonly {
    readonly prefix?: string;
    readonly configMapRef?: { readonly name: string; readonly optional?: boolean };
    readonly secretRef?: { readonly name: string; readonly optional?: boolean };
  }[];
  readonly ports?: readonly { readonly name?: string; readonly containerPort: number }[];
  readonly resources?: {
    readonly limits?: Readonly<Record<string, string>>;
    readonly requests?: Readonly<Record<string, string>>;
  };
  readonly volumeMounts?: readonly {
    readonly name: string;
    readonly mountPath: string;
    readonly subPath?: string;
    readonly readOnly?: boolean;
  }[];
  /** `Always` makes an init container a sidecar. */
  readonly restartPolicy?: "Always";
  readonly startupProbe?: ProbeSpec;
  readonly readinessProbe?: ProbeSpec;
  readonly livenessProbe?: ProbeSpec;
  readonly lifecycle?: { readonly postStart?: Handler; readonly preStop?: Handler };
  readonly securityContext?: SecurityContext;
}

export interface EnvVar {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: {
    readonly fieldRef?: { readonly fieldPath: string };
    readonly resourceFieldRef?: ResourceFieldRef;
    readonly configMapKeyRef?: KeyRef;
    readonly secretKeyRef?: KeyRef;
  };
}

export interface KeyRef {
  readonly name: string;
  readonly key: string;
  readonly optional?: boolean;
}

export interface ResourceFieldRef {
  readonly containerName?: string;
  readonly resource: string;
  readonly divisor?: string;
}

/** Something to be done in or to a container: a probe or a hook. */
export interface Handler {
  readonly exec?: { readonly command?: readonly string[] };
  readonly httpGet?: {
    readonly host?: string;
    readonly port: number | string;
    readonly path?: string;
    readonly scheme?: "HTTP" | "HTTPS";
    readonly httpHeaders?: readonly { readonly name: string; readonly value: string }[];
  };
  readonly tcpSocket?: { readonly host?: string; readonly port: number | string };
  readonly grpc?: { readonly port: number; readonly service?: string };
  readonly sleep?: { readonly seconds: number };
}

export interface ProbeSpec extends Handler {
  readonly initialDelaySeconds?: number;
  readonly periodSeconds?: number;
  readonly timeoutSeconds?: number;
  readonly successThreshold?: number;
  readonly failureThreshold?: number;
}

export interface Item {
  readonly key: string;
  readonly path: string;
  readonly mode?: number;
}

export interface DownwardItem {
  readonly path: string;
  readonly fieldRef?: { readonly fieldPath: string };
  readonly resourceFieldRef?: ResourceFieldRef;
}

interface Bundle {
  readonly items?: readonly Item[];
  readonly optional?: boolean;
}

export interface TrustBundleSource {
  readonly name?: string;
  readonly signerName?: string;
  readonly labelSelector?: { readonly matchLabels?: Readonly<Record<string, string>> };
  readonly optional?: boolean;
  readonly path: string;
}

export interface ProjectedSource {
  readonly configMap?: Bundle & { readonly name: string };
  readonly secret?: Bundle & { readonly name: string };
  readonly downwardAPI?: { readonly items?: readonly DownwardItem[] };
  readonly clusterTrustBundle?: TrustBundleSource;
  readonly serviceAccountToken?: { readonly audience?: string; readonly expirationSeconds?: number; readonly path: string };
}

export interface VolumeSpec {
  readonly name: string;
  readonly emptyDir?: object;
  readonly hostPath?: { readonly path: string };
  readonly configMap?: Bundle & { readonly name: string; readonly defaultMode?: number };
  readonly secret?: Bundle & { readonly secretName: string; readonly defaultMode?: number };
  readonly downwardAPI?: { readonly items?: readonly DownwardItem[]; readonly defaultMode?: number };
  readonly projected?: { readonly sources?: readonly ProjectedSource[]; readonly defaultMode?: number };
}

/** Whether an init container stays beside the others instead of ending before them. */
export const isSidecar = ({ restartPolicy }: ContainerSpec): boolean => restartPolicy === "Always";

/** The port that a number or a name stands for. */
export function portOf(container: ContainerSpec, port: number | string): number {
  const number = Number(port);
  return Number.isInteger(number) ? number : (container.ports?.find(({ name }) => name === port)?.containerPort ?? 0);
}
