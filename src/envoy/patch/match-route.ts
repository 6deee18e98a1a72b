import type { Route, VirtualHost } from "../../gen/envoy/config/route/v3/route_components_pb.js";
import type { Patch, PatchContext } from "./patch.ts";

/** Ports of the Service in front of a gateway, by the port the gateway listens on. */
export type GatewayPorts = readonly { readonly port: number; readonly targets: readonly number[] }[];

/** What is known of a table by its name: gateways write port, server and Gateway into it. */
interface TableName {
  readonly port: number;
  readonly portName: string;
  readonly gateway: string;
}

/** Whether a patch speaks of a route table. At a gateway a port is that of its Service, or, where it has none, the one it listens on. */
export function matchesTable(
  { route: match }: Patch,
  name: string,
  { context, ports }: { context: PatchContext; ports: GatewayPorts },
): boolean {
  if (match === undefined) return true;
  if (match.name !== undefined && match.name !== name) return false;
  if (context !== "GATEWAY") return match.port === undefined || match.port === sidecarPort(name);
  const table = gatewayTable(name);
  return (
    (match.port === undefined || portsFor(table.port, ports).includes(match.port)) &&
    (match.portName === undefined || match.portName === table.portName) &&
    (match.gateway === undefined || match.gateway === table.gateway)
  );
}

/** `80` and `inbound|8080||` name a port; the table of one sniffed host (`reviews:9080`) does not count as that of its port, as in Istio. */
function sidecarPort(name: string): number {
  return name.startsWith("inbound|") ? Number(name.split("|")[1]) : Number(/^\d+$/.test(name) ? name : 0);
}

/** `http.8080`, `https.443.https-web.my-gateway.shop` */
function gatewayTable(name: string): TableName {
  const [scheme, port = "", portName = "", gateway = "", namespace = ""] = name.split(".");
  return { port: Number(port), portName: scheme === "https" ? portName : "", gateway: scheme === "https" ? `${namespace}/${gateway}` : "" };
}

function portsFor(listening: number, ports: GatewayPorts): readonly number[] {
  const mapped = ports.filter(({ targets }) => targets.includes(listening)).map(({ port }) => port);
  return mapped.length === 0 ? [listening] : mapped;
}

/** Whether a patch speaks of a virtual host of a table that it speaks of. */
export function matchesHost({ route }: Patch, host: VirtualHost): boolean {
  return (route?.vhost === undefined || route.vhost === host.name) && (route?.domain === undefined || host.domains.includes(route.domain));
}

/** Whether a patch speaks of a route of a virtual host that it speaks of. */
export function matchesRoute({ route: match }: Patch, route: Route): boolean {
  const { name, action } = match?.route ?? {};
  return (name === undefined || name === route.name) && (action === undefined || action === route.action.case);
}
