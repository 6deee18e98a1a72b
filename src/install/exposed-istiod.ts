import type { KubeObject } from "../kube/resource-type.ts";
import { type InstallOptions, installLabels, installName } from "./install-options.ts";

/** Ports of the gateway, and which port of istiod's Service each leads to. */
const EXPOSED = [
  { name: "tls-istiod", port: 15012, to: 15012 },
  { name: "tls-istiodwebhook", port: 15017, to: 443 },
] as const;

/** A gateway that passes TLS through to istiod, for machines and clusters outside: istiod itself authenticates whoever comes. */
export function exposedIstiod(options: InstallOptions): readonly KubeObject[] {
  const { namespace } = options;
  const labels = installLabels(options);
  const gateway = `${installName(options)}-gateway`;
  const host = `${installName(options)}.${namespace}.svc.cluster.local`;
  return [
    {
      apiVersion: "networking.istio.io/v1",
      kind: "Gateway",
      metadata: { name: gateway, namespace, labels },
      spec: {
        selector: { istio: "eastwestgateway" },
        servers: EXPOSED.map(({ name, port }) => ({
          port: { number: port, name, protocol: "TLS" },
          tls: { mode: "PASSTHROUGH" },
          hosts: ["*"],
        })),
      },
    },
    {
      apiVersion: "networking.istio.io/v1",
      kind: "VirtualService",
      metadata: { name: `${installName(options)}-vs`, namespace, labels },
      spec: {
        hosts: ["*"],
        gateways: [gateway],
        tls: EXPOSED.map(({ port, to }) => ({
          match: [{ port, sniHosts: ["*"] }],
          route: [{ destination: { host, port: { number: to } } }],
        })),
      },
    },
  ];
}
