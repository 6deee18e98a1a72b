import { quote } from "../../base/quote.ts";
import type {
  MeshNetworks,
  Network_IstioNetworkGateway,
  Network_NetworkEndpoints,
} from "../../gen/istio/mesh/v1alpha1/mesh_networks_pb.js";
import { isAddress, subnetFault } from "../checks/address.ts";
import { fqdnFault, isDnsLabel } from "../checks/host-name.ts";
import type { Place } from "../checks/place.ts";
import { portFault } from "../checks/port.ts";

/** Every network: its address ranges and registries, and the gateways through which it is reached. */
export function validateMeshNetworks(networks: MeshNetworks, place: Place): void {
  for (const [name, network] of Object.entries(networks.networks)) {
    const at = place.in("networks", name);
    for (const [index, endpoints] of network.endpoints.entries()) validateEndpoints(endpoints, at.in("endpoints", index));
    for (const [index, gateway] of network.gateways.entries()) validateGateway(gateway, at.in("gateways", index));
  }
}

function validateEndpoints({ ne }: Network_NetworkEndpoints, place: Place): void {
  if (ne.case === "fromCidr") place.in("fromCidr").check("field.invalid", subnetFault(ne.value));
  if (ne.case === "fromRegistry" && !isDnsLabel(ne.value))
    place.in("fromRegistry").fault("field.invalid", `${quote(ne.value)} is not the name of a registry`);
}

/** A gateway's address may be a host name: the control plane resolves it, as Istio does by default. */
function validateGateway({ gw, port }: Network_IstioNetworkGateway, place: Place): void {
  if (gw.case === "registryServiceName") place.in("registryServiceName").check("field.host", fqdnFault(gw.value));
  if (gw.case === "address" && !isAddress(gw.value) && fqdnFault(gw.value) !== undefined) {
    place.in("address").fault("field.host", `${quote(gw.value)} is neither an IP address nor a host name`);
  }
  place.in("port").check("field.port", portFault(port));
}
