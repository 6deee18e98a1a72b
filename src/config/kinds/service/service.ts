import { defined } from "../../parse/defined.ts";
import type { Fields } from "../../parse/fields.ts";
import { kubeKind } from "../kube-kind.ts";

/** One port of a Kubernetes Service. */
export interface ServicePort {
  readonly name?: string;
  readonly port: number;
  readonly targetPort?: number | string;
  readonly nodePort?: number;
  readonly protocol?: string;
  readonly appProtocol?: string;
}

/** What a mesh reads of a Kubernetes Service: its spec, and the addresses its load balancer has. */
export interface ServiceSpec {
  readonly type?: string;
  readonly clusterIP?: string;
  readonly clusterIPs: readonly string[];
  readonly externalIPs: readonly string[];
  readonly externalName?: string;
  readonly selector: Readonly<Record<string, string>>;
  readonly ports: readonly ServicePort[];
  readonly internalTrafficPolicy?: string;
  readonly externalTrafficPolicy?: string;
  readonly trafficDistribution?: string;
  readonly publishNotReadyAddresses?: boolean;
  readonly sessionAffinity?: string;
  readonly loadBalancer: readonly { readonly ip?: string; readonly hostname?: string }[];
}

export const service = kubeKind<ServiceSpec>({
  kind: "Service",
  group: "",
  versions: ["v1"],
  plural: "services",
  singular: "service",
  shortNames: ["svc"],
  read(document) {
    const spec = document.object("spec");
    return defined({
      type: spec.text("type"),
      clusterIP: spec.text("clusterIP"),
      clusterIPs: spec.texts("clusterIPs"),
      externalIPs: spec.texts("externalIPs"),
      externalName: spec.text("externalName"),
      selector: spec.map("selector"),
      ports: spec.objects("ports").map(readPort),
      internalTrafficPolicy: spec.text("internalTrafficPolicy"),
      externalTrafficPolicy: spec.text("externalTrafficPolicy"),
      trafficDistribution: spec.text("trafficDistribution"),
      publishNotReadyAddresses: spec.flag("publishNotReadyAddresses"),
      sessionAffinity: spec.text("sessionAffinity"),
      loadBalancer: document
        .object("status")
        .object("loadBalancer")
        .objects("ingress")
        .map((ingress) => defined({ ip: ingress.text("ip"), hostname: ingress.text("hostname") })),
    });
  },
});

const readPort = (port: Fields): ServicePort =>
  defined({
    name: port.text("name"),
    port: port.number("port") ?? 0,
    targetPort: port.numberOrText("targetPort"),
    nodePort: port.number("nodePort"),
    protocol: port.text("protocol"),
    appProtocol: port.text("appProtocol"),
  });
