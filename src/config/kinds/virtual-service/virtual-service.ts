import { quote } from "../../../base/quote.ts";
import { type VirtualService, VirtualServiceSchema } from "../../../gen/istio/networking/v1alpha3/virtual_service_pb.js";
import { isAddress } from "../../checks/address.ts";
import { checkExportTo } from "../../checks/export-to.ts";
import { checkGatewayNames } from "../../checks/gateway-names.ts";
import { isJwtClaim } from "../../checks/header.ts";
import { gatewayDomainFault, wildcardDomainFault } from "../../checks/host-name.ts";
import type { Place } from "../../checks/place.ts";
import type { ConfigObject } from "../../object.ts";
import { istioKind } from "../istio-kind.ts";
import { checkHttpRoute } from "./check-http-route.ts";
import { checkTcpRoute, checkTlsRoute } from "./check-l4-route.ts";
import { overlappingHosts } from "./overlapping-hosts.ts";
import { warnUnreachable } from "./warn-unreachable.ts";

/** Name that binds a VirtualService to all sidecars instead of a gateway. */
const MESH = "mesh";
/** Set on VirtualServices made from Gateway API routes, whose rules differ a little. */
const ROUTE_SEMANTICS = "internal.istio.io/route-semantics";

/** Routing of HTTP, TLS and TCP to a host. */
export const virtualService = istioKind({
  kind: "VirtualService",
  group: "networking.istio.io",
  versions: ["v1", "v1beta1", "v1alpha3"],
  plural: "virtualservices",
  singular: "virtualservice",
  shortNames: ["vs"],
  columns: { Gateways: ".spec.gateways", Hosts: ".spec.hosts", Age: ".metadata.creationTimestamp" },
  schema: VirtualServiceSchema,
  rules: {},
  check: checkVirtualService,
});

function checkVirtualService(spec: VirtualService, place: Place, object: ConfigObject<VirtualService>): void {
  const isDelegate = spec.hosts.length === 0;
  const gatewayApi = object.annotations[ROUTE_SEMANTICS] === "gateway";
  if (isDelegate) checkDelegate(spec, place);
  checkGatewayNames(spec.gateways, place.in("gateways"));
  checkHosts(spec, place.in("hosts"));
  if (!isBoundToGateway(spec)) checkNoClaims(spec, place.in("http"));
  if (spec.http.length === 0 && spec.tls.length === 0 && spec.tcp.length === 0)
    place.fault("field.required", "give http, tls or tcp routes");
  for (const [index, route] of spec.http.entries()) checkHttpRoute(route, { isDelegate, gatewayApi }, place.in("http", index));
  for (const [index, route] of spec.tls.entries())
    checkTlsRoute(route, { hosts: spec.hosts, mayBeGenerated: !spec.gateways.includes(MESH), gatewayApi }, place.in("tls", index));
  for (const [index, route] of spec.tcp.entries()) checkTcpRoute(route, gatewayApi, place.in("tcp", index));
  checkExportTo(spec.exportTo, { namespace: object.namespace }, place.in("exportTo"));
  warnUnreachable(spec, place);
}

const isBoundToGateway = (spec: VirtualService): boolean => spec.gateways.some((name) => name !== MESH);
const isBoundToMesh = (spec: VirtualService): boolean => spec.gateways.length === 0 || spec.gateways.includes(MESH);

/** Without hosts it is a delegate: another VirtualService includes its HTTP routes. */
function checkDelegate(spec: VirtualService, place: Place): void {
  if (spec.gateways.length > 0)
    place
      .in("gateways")
      .fault("field.conflict", "a VirtualService without hosts is a delegate and takes its gateways from who delegates to it");
  if (spec.tls.length > 0) place.in("tls").fault("field.conflict", "a VirtualService without hosts is a delegate and routes HTTP only");
  if (spec.tcp.length > 0) place.in("tcp").fault("field.conflict", "a VirtualService without hosts is a delegate and routes HTTP only");
}

function checkHosts(spec: VirtualService, place: Place): void {
  const routesBySni = spec.tls.some(({ match }) => match.some(({ sniHosts }) => sniHosts.length > 0));
  const domainFault = isBoundToGateway(spec) ? (host: string) => gatewayDomainFault(host, routesBySni) : wildcardDomainFault;
  for (const [index, host] of spec.hosts.entries()) {
    if (!isAddress(host)) place.in(index).check("field.host", domainFault(host));
    if (host === "*" && isBoundToMesh(spec))
      place.in(index).fault("field.host", "every host at once can be routed at gateways only, not in the mesh");
  }
  for (const [index, other] of overlappingHosts(spec.hosts)) {
    place.in(index).fault("field.duplicate", `${quote(spec.hosts[index] ?? "")} and ${quote(spec.hosts[other] ?? "")} overlap`);
  }
}

/** Sidecars see no verified token when they choose a route. */
function checkNoClaims(spec: VirtualService, place: Place): void {
  for (const [index, route] of spec.http.entries()) {
    for (const [at, match] of route.match.entries()) {
      for (const name of ["headers", "withoutHeaders"] as const) {
        const claim = Object.keys(match[name]).find(isJwtClaim);
        if (claim !== undefined)
          place.in(index, "match", at, name, claim).fault("field.conflict", "claims of the token can be matched at gateways only");
      }
    }
  }
}
