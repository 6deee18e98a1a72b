import { startDnsServer } from "../../../src/agent/dns/dns-server.ts";
import { messageOf } from "../../../src/base/errors.ts";
import { silentLog } from "../../../src/base/log.ts";
import type { KubeClient } from "../kube-client.ts";
import { watchAll } from "../watch.ts";
import { clusterResolver } from "./cluster-dns.ts";
import { latestOnly } from "./latest-only.ts";
import type { NodeNetwork } from "./node-network.ts";
import type { EndpointSlice, Service, ServiceState } from "./service.ts";
import { serviceRules } from "./service-rules.ts";

export interface ServiceNodeOptions {
  readonly client: KubeClient;
  readonly network: NodeNetwork;
  /** Names outside the cluster and their addresses. */
  readonly names: Readonly<Record<string, readonly string[]>>;
  readonly signal: AbortSignal;
}

/** Makes Services work: routes to their endpoints, answers for their names, gives load balancers addresses. Resolves when names can be asked for. */
export async function serveServices({ client, network, names, signal }: ServiceNodeOptions): Promise<void> {
  let services: ReadonlyMap<string, Service> = new Map();
  let slices: ReadonlyMap<string, EndpointSlice> = new Map();
  const state = (): ServiceState => ({ services: [...services.values()], slices: [...slices.values()] });
  const route = latestOnly(async () => {
    try {
      if (!signal.aborted) await network.setRules(serviceRules(state(), network));
    } catch (error) {
      if (!signal.aborted) process.stderr.write(`nodelet: Services cannot be reached: ${messageOf(error)}\n`);
    }
  });
  const balance = latestOnly(() => giveAddresses(client, [...services.values()], network.balancerPrefix));
  void watchAll<Service>({
    client,
    resource: "Service",
    signal,
    changed(all) {
      services = new Map(all);
      route();
      balance();
    },
  });
  void watchAll<EndpointSlice>({
    client,
    resource: "EndpointSlice",
    signal,
    changed(all) {
      slices = new Map(all);
      route();
    },
  });
  const dns = await startDnsServer({
    addresses: [network.machineAddress],
    port: 0,
    resolve: clusterResolver(state, names),
    log: silentLog,
  });
  signal.addEventListener("abort", () => dns.close());
  await client.apply(dnsService(network, dns.port));
}

async function giveAddresses(client: KubeClient, services: readonly Service[], prefix: string): Promise<void> {
  const taken = new Set(services.flatMap(({ status }) => (status?.loadBalancer?.ingress ?? []).map(({ ip }) => ip)));
  for (const { metadata, spec, status } of services) {
    const waits =
      spec.type === "LoadBalancer" && spec.loadBalancerClass === undefined && (status?.loadBalancer?.ingress ?? []).length === 0;
    if (!waits) continue;
    const ip = Array.from({ length: 254 }, (_, index) => `${prefix}.${index + 1}`).find((address) => !taken.has(address));
    taken.add(ip);
    const body = { status: { loadBalancer: { ingress: [{ ip, ipMode: "VIP" }] } } };
    // It may be gone by now; if not, its next change brings us here again.
    await client.patch("Service", `${metadata.namespace}/${metadata.name}`, { subresource: "status", body }).catch(() => {});
  }
}

/** The cluster's DNS is a Service like others; its only endpoint is this machine. */
const dnsService = ({ dnsAddress, machineAddress }: NodeNetwork, port: number): string => `
apiVersion: v1
kind: Service
metadata: {name: kube-dns, namespace: kube-system, labels: {k8s-app: kube-dns}}
spec:
  clusterIP: ${dnsAddress}
  ports:
  - {name: dns, port: 53, protocol: UDP, targetPort: ${port}}
  - {name: dns-tcp, port: 53, protocol: TCP, targetPort: ${port}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: kube-dns, namespace: kube-system, labels: {kubernetes.io/service-name: kube-dns}}
addressType: IPv4
endpoints: [{addresses: [${machineAddress}], conditions: {ready: true}}]
ports:
- {name: dns, port: ${port}, protocol: UDP}
- {name: dns-tcp, port: ${port}, protocol: TCP}
`;
