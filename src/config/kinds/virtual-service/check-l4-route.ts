import { matchesHost } from "../../../base/hostname.ts";
import { quote } from "../../../base/quote.ts";
import type {
  L4MatchAttributes,
  TCPRoute,
  TLSMatchAttributes,
  TLSRoute,
} from "../../../gen/istio/networking/v1alpha3/virtual_service_pb.js";
import { isAddress, subnetFault } from "../../checks/address.ts";
import { gatewayDomainFault, partialWildcardFault, wildcardDomainFault } from "../../checks/host-name.ts";
import type { Place } from "../../checks/place.ts";
import { checkSource } from "./check-http-match.ts";
import { checkDestinations } from "./check-http-route.ts";

/** What the rules of a TLS route depend on besides it. */
export interface TlsContext {
  /** Hosts of the VirtualService: SNI names must be among them. */
  readonly hosts: readonly string[];
  /** SNI names may be those that Istio makes up for clusters: not where sidecars are meant by name. */
  readonly mayBeGenerated: boolean;
  readonly gatewayApi: boolean;
}

/** A route for connections chosen by the name in the TLS hello. */
export function checkTlsRoute(route: TLSRoute, context: TlsContext, place: Place): void {
  if (route.match.length === 0) place.in("match").fault("field.required", "a TLS route needs at least one match");
  for (const [index, match] of route.match.entries()) checkTlsMatch(match, context, place.in("match", index));
  if (route.route.length === 0) place.in("route").fault("field.required", "must be set");
  checkDestinations(route.route, context.gatewayApi, place.in("route"));
}

/** A route for plain connections. */
export function checkTcpRoute(route: TCPRoute, gatewayApi: boolean, place: Place): void {
  for (const [index, match] of route.match.entries()) checkL4Match(match, place.in("match", index));
  if (route.route.length === 0) place.in("route").fault("field.required", "must be set");
  checkDestinations(route.route, gatewayApi, place.in("route"));
}

function checkTlsMatch(match: TLSMatchAttributes, context: TlsContext, place: Place): void {
  if (match.sniHosts.length === 0) place.in("sniHosts").fault("field.required", "a TLS match needs at least one SNI host");
  for (const [index, host] of match.sniHosts.entries()) {
    const at = place.in("sniHosts", index);
    if (isAddress(host)) {
      at.fault("field.ineffective", `${quote(host)} is an address, which TLS does not allow as a server name: few clients send one`);
      continue;
    }
    const fault = context.mayBeGenerated ? gatewayDomainFault(host, true) : wildcardDomainFault(host);
    at.check("field.host", fault);
    if (fault !== undefined) continue;
    at.check("field.ineffective", partialWildcardFault(host));
    if (!context.hosts.some((outer) => matchesHost(outer.toLowerCase(), host.toLowerCase())))
      at.fault("field.host", `${quote(host)} is not among the hosts of the VirtualService`);
  }
  checkSubnets(match.destinationSubnets, place);
  checkSource(match, place);
}

function checkL4Match(match: L4MatchAttributes, place: Place): void {
  checkSubnets(match.destinationSubnets, place);
  if (match.sourceSubnet !== "") place.in("sourceSubnet").check("field.invalid", subnetFault(match.sourceSubnet));
  checkSource(match, place);
}

function checkSubnets(subnets: readonly string[], place: Place): void {
  for (const [index, subnet] of subnets.entries()) place.in("destinationSubnets", index).check("field.invalid", subnetFault(subnet));
}
