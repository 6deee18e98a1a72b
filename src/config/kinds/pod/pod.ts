import { defined } from "../../parse/defined.ts";
import type { Fields } from "../../parse/fields.ts";
import { kubeKind } from "../kube-kind.ts";

/** What a mesh reads of a Pod. Its labels are those of the object. */
export interface Pod {
  /** Tells it from another of the same name before or after it. */
  readonly uid?: string;
  /** Set once the pod is being deleted. */
  readonly deletionTimestamp?: string;
  readonly spec: {
    readonly nodeName?: string;
    readonly hostNetwork?: boolean;
    readonly serviceAccountName?: string;
    readonly hostname?: string;
    readonly subdomain?: string;
    /** Those that run as long as the pod does, sidecars among the init containers too. */
    readonly containers: readonly { readonly name?: string; readonly ports: readonly ContainerPort[] }[];
  };
  readonly status: {
    readonly phase?: string;
    readonly podIP?: string;
    readonly podIPs: readonly { readonly ip: string }[];
    readonly conditions: readonly { readonly type: string; readonly status: string }[];
  };
}

/** A port a container declares. */
export interface ContainerPort {
  readonly name?: string;
  readonly containerPort: number;
  readonly protocol?: string;
}

export const pod = kubeKind<Pod>({
  kind: "Pod",
  group: "",
  versions: ["v1"],
  plural: "pods",
  singular: "pod",
  shortNames: ["po"],
  read: (document) =>
    defined({
      uid: document.object("metadata").text("uid"),
      deletionTimestamp: document.object("metadata").text("deletionTimestamp"),
      spec: readSpec(document.object("spec")),
      status: readStatus(document.object("status")),
    }),
});

const readSpec = (spec: Fields): Pod["spec"] =>
  defined({
    nodeName: spec.text("nodeName"),
    hostNetwork: spec.flag("hostNetwork"),
    serviceAccountName: spec.text("serviceAccountName"),
    hostname: spec.text("hostname"),
    subdomain: spec.text("subdomain"),
    containers: [...spec.objects("containers"), ...spec.objects("initContainers").filter(isSidecar)].map((container) =>
      defined({ name: container.text("name"), ports: container.objects("ports").map(readPort) }),
    ),
  });

/** An init container that is started again whenever it ends runs beside the others. */
const isSidecar = (container: Fields): boolean => container.text("restartPolicy") === "Always";

const readPort = (port: Fields): ContainerPort =>
  defined({ name: port.text("name"), containerPort: port.number("containerPort") ?? 0, protocol: port.text("protocol") });

const readStatus = (status: Fields): Pod["status"] =>
  defined({
    phase: status.text("phase"),
    podIP: status.text("podIP"),
    podIPs: status.objects("podIPs").map((ip) => ({ ip: ip.text("ip") ?? "" })),
    conditions: status
      .objects("conditions")
      .map((condition) => ({ type: condition.text("type") ?? "", status: condition.text("status") ?? "" })),
  });
