import { quote } from "../../base/quote.ts";
import type {
  LoadBalancerSettings,
  TrafficPolicy,
  TrafficPolicy_PortTrafficPolicy,
  TrafficPolicy_TunnelSettings,
} from "../../gen/istio/networking/v1alpha3/destination_rule_pb.js";
import { isAddress } from "./address.ts";
import { checkClientTls } from "./client-tls.ts";
import { checkConnectionPool } from "./connection-pool.ts";
import { durationFault } from "./duration.ts";
import { fqdnFault } from "./host-name.ts";
import { checkLoadBalancer } from "./load-balancer.ts";
import { checkOutlierDetection } from "./outlier-detection.ts";
import { percentFault } from "./percent.ts";
import type { Place } from "./place.ts";
import { portFault } from "./port.ts";

const TUNNEL_PROTOCOLS: ReadonlySet<string> = new Set(["", "CONNECT", "POST"]);

/** How connections to a destination are made, balanced and given up, as an object of a namespace says. */
export function checkTrafficPolicy(policy: TrafficPolicy, namespace: string, place: Place): void {
  const { tunnel, proxyProtocol, retryBudget, portLevelSettings } = policy;
  if (
    !hasCommon(policy) &&
    tunnel === undefined &&
    proxyProtocol === undefined &&
    retryBudget === undefined &&
    portLevelSettings.length === 0
  ) {
    place.fault("field.required", "a traffic policy must set something");
  }
  checkCommon(policy, namespace, place);
  for (const [index, port] of portLevelSettings.entries()) checkPortPolicy(port, namespace, place.in("portLevelSettings", index));
  if (tunnel !== undefined && proxyProtocol !== undefined)
    place.in("proxyProtocol").fault("field.conflict", "cannot be combined with tunnel");
  if (tunnel !== undefined) checkTunnel(tunnel, place.in("tunnel"));
  if (retryBudget?.percent !== undefined) place.in("retryBudget", "percent").check("field.range", percentFault(retryBudget.percent));
  if (retryBudget?.budgetInterval !== undefined)
    place.in("retryBudget", "budgetInterval").check("field.range", durationFault(retryBudget.budgetInterval));
}

type Common = Pick<TrafficPolicy, "loadBalancer" | "connectionPool" | "outlierDetection" | "tls">;

const hasCommon = (policy: Common): boolean =>
  policy.loadBalancer !== undefined ||
  policy.connectionPool !== undefined ||
  policy.outlierDetection !== undefined ||
  policy.tls !== undefined;

function checkCommon(policy: Common, namespace: string, place: Place): void {
  const balancer: LoadBalancerSettings | undefined = policy.loadBalancer;
  if (policy.outlierDetection !== undefined) checkOutlierDetection(policy.outlierDetection, place.in("outlierDetection"));
  if (policy.connectionPool !== undefined) checkConnectionPool(policy.connectionPool, place.in("connectionPool"));
  if (balancer !== undefined) checkLoadBalancer(balancer, policy.outlierDetection, place.in("loadBalancer"));
  if (policy.tls !== undefined) checkClientTls(policy.tls, namespace, place.in("tls"));
}

function checkPortPolicy(policy: TrafficPolicy_PortTrafficPolicy, namespace: string, place: Place): void {
  if (policy.port === undefined) place.in("port").fault("field.required", "say which port the settings are for");
  else if (portFault(policy.port.number) !== undefined)
    place.in("port", "number").fault("field.ineffective", `no service has port ${policy.port.number}`);
  if (!hasCommon(policy)) place.fault("field.required", "the settings of a port must set something");
  checkCommon(policy, namespace, place);
}

function checkTunnel(tunnel: TrafficPolicy_TunnelSettings, place: Place): void {
  if (!TUNNEL_PROTOCOLS.has(tunnel.protocol))
    place.in("protocol").fault("field.invalid", `${quote(tunnel.protocol)} is neither CONNECT nor POST`);
  if (!isAddress(tunnel.targetHost)) place.in("targetHost").check("field.host", fqdnFault(tunnel.targetHost));
  place.in("targetPort").check("field.port", portFault(tunnel.targetPort));
}
