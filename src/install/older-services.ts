import type { KubeObject } from "../kube/resource-type.ts";
import { type InstallOptions, installLabels, podSelector } from "./install-options.ts";

/** Names and ports under which older versions of Istio had what is one program today; istiod's certificate is for them too. */
const OLDER_SERVICES: Readonly<Record<string, readonly { readonly name: string; readonly port: number; readonly targetPort: number }[]>> = {
  "istio-pilot": [
    { name: "https-xds", port: 15011, targetPort: 15012 },
    { name: "https-dns", port: 15012, targetPort: 15012 },
    { name: "http-monitoring", port: 15014, targetPort: 15014 },
  ],
  "istio-citadel": [{ name: "grpc-citadel", port: 8060, targetPort: 15012 }],
  "istio-galley": [{ name: "https-validation", port: 443, targetPort: 15017 }],
  "istio-sidecar-injector": [{ name: "https-inject", port: 443, targetPort: 15017 }],
};

/** Services that lead what still uses older names to istiod. */
export const olderServices = (options: InstallOptions): readonly KubeObject[] =>
  Object.entries(OLDER_SERVICES).map(([name, ports]) => ({
    apiVersion: "v1",
    kind: "Service",
    metadata: { name, namespace: options.namespace, labels: installLabels(options) },
    spec: { selector: podSelector(options), ports: ports.map((port) => ({ ...port, protocol: "TCP" })) },
  }));
