import type { NodeNetwork } from "./node-network.ts";
import { type Service, type ServicePort, type ServiceState, slicesOf, usable } from "./service.ts";

/**
 * Rules for `iptables-restore` that do for Services what kube-proxy does: each new connection to an address of a Service goes to one of its
 * endpoints at random, and one to a Service without endpoints is refused. Session affinity and traffic policies are not honoured.
 */
export function serviceRules(state: ServiceState, network: Pick<NodeNetwork, "nodeAddress" | "machineAddress" | "range">): string {
  const { nodeAddress, machineAddress, range } = network;
  const parts = state.services.flatMap((service) =>
    (service.spec.ports ?? []).map((port) => portRules(state, { service, port, nodeAddress })),
  );
  const pods = new Set(parts.flatMap(({ targets }) => targets.map((target) => target.replace(/:.*/, ""))));
  return [
    ...["*nat", ":SERVICES - [0:0]", "-A PREROUTING -j SERVICES", "-A OUTPUT -j SERVICES"],
    ...parts.flatMap(({ nat }) => nat),
    // A pod that meets itself must not see its own address as the caller's, or it would answer past the translation.
    ...[...pods].map((pod) => `-A POSTROUTING -s ${pod}/32 -d ${pod}/32 -j MASQUERADE`),
    ...["COMMIT", "*filter"],
    ...parts.flatMap(({ filter }) => filter),
    // What is left for an address of the range that nobody has would go to and fro between the node and this machine.
    ...[`-A FORWARD -d ${machineAddress}/32 -j ACCEPT`, `-A FORWARD -d ${range} -o machine -j REJECT --reject-with icmp-host-unreachable`],
    "COMMIT\n",
  ].join("\n");
}

interface PortPlan {
  readonly service: Service;
  readonly port: ServicePort;
  readonly nodeAddress: string;
}

function portRules(state: ServiceState, { service, port, nodeAddress }: PortPlan) {
  const protocol = (port.protocol ?? "TCP").toLowerCase();
  const targets = targetsOf(state, service, port);
  const fronts = [
    ...addressesOf(service).map((address) => `-d ${address}/32 -p ${protocol} -m ${protocol} --dport ${port.port}`),
    ...(port.nodePort === undefined ? [] : [`-d ${nodeAddress}/32 -p ${protocol} -m ${protocol} --dport ${port.nodePort}`]),
  ];
  const nat = fronts.flatMap((front) =>
    targets.map((target, index) => {
      const left = targets.length - index;
      const chance = left === 1 ? "" : ` -m statistic --mode random --probability ${(1 / left).toFixed(10)}`;
      return `-A SERVICES ${front}${chance} -j DNAT --to-destination ${target}`;
    }),
  );
  const refuse = protocol === "tcp" ? "REJECT --reject-with tcp-reset" : "REJECT";
  const filter =
    targets.length > 0 ? [] : fronts.flatMap((front) => ["FORWARD", "OUTPUT"].map((chain) => `-A ${chain} ${front} -j ${refuse}`));
  return { targets, nat, filter };
}

function addressesOf({ spec, status }: Service): readonly string[] {
  const own = spec.clusterIPs ?? (spec.clusterIP === undefined ? [] : [spec.clusterIP]);
  const balancers = (status?.loadBalancer?.ingress ?? []).flatMap(({ ip }) => (ip === undefined ? [] : [ip]));
  return [...own, ...balancers, ...(spec.externalIPs ?? [])].filter((address) => /^[\d.]+$/.test(address));
}

function targetsOf(state: ServiceState, service: Service, port: ServicePort): readonly string[] {
  const pairs = slicesOf(state, service).flatMap(({ endpoints, ports }) => {
    const target = ports?.find(
      ({ name, protocol }) => (name ?? "") === (port.name ?? "") && (protocol ?? "TCP") === (port.protocol ?? "TCP"),
    );
    return target?.port === undefined ? [] : (endpoints ?? []).map((endpoint) => ({ endpoint, port: target.port }));
  });
  const chosen = new Set(usable(pairs.map(({ endpoint }) => endpoint)));
  const targets = pairs
    .filter(({ endpoint }) => chosen.has(endpoint))
    .map(({ endpoint, port: number }) => `${endpoint.addresses[0]}:${number}`);
  return [...new Set(targets)].sort();
}
