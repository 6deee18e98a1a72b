import type { FilterChain } from "../../gen/envoy/config/listener/v3/listener_components_pb.js";
import type { Listener } from "../../gen/envoy/config/listener/v3/listener_pb.js";
import type { Patch } from "./patch.ts";

const VIRTUAL: ReadonlySet<string> = new Set(["virtualInbound", "virtualOutbound"]);

/**
 * Whether a patch speaks of this listener. All inbound ports share `virtualInbound`, so for what is inside it (and `virtualOutbound`) a port
 * means that of a filter chain, not the listener's own.
 */
export function matchesListener({ listener: match, applyTo }: Patch, listener: Listener): boolean {
  if (match === undefined) return true;
  if (match.name !== undefined && match.name !== listener.name) return false;
  if (match.port === undefined || (applyTo !== "LISTENER" && VIRTUAL.has(listener.name))) return true;
  return portOf(listener) === match.port;
}

export function portOf({ address }: Listener): number | undefined {
  const socket = address?.address;
  if (socket?.case !== "socketAddress" || socket.value.portSpecifier.case !== "portValue") return undefined;
  return socket.value.portSpecifier.value;
}

/** Whether a patch speaks of this chain of a listener that it speaks of. All application protocols it lists must be the chain's. */
export function matchesChain({ listener: match }: Patch, listener: Listener, chain: FilterChain): boolean {
  const wanted = match?.chain ?? {};
  const own = chain.filterChainMatch;
  if (match?.port !== undefined && VIRTUAL.has(listener.name) && own?.destinationPort !== match.port) return false;
  return (
    (wanted.name === undefined || wanted.name === chain.name) &&
    (wanted.sni === undefined || own?.serverNames.includes(wanted.sni) === true) &&
    (wanted.transportProtocol === undefined || own?.transportProtocol === wanted.transportProtocol) &&
    (wanted.applicationProtocols ?? []).every((protocol) => own?.applicationProtocols.includes(protocol) === true) &&
    (wanted.destinationPort === undefined || own?.destinationPort === wanted.destinationPort)
  );
}
