import type { GenerateContext } from "../context.ts";

/** Readiness and statistics: listeners that stand in every proxy's bootstrap. */
const BOOTSTRAP_PORTS = [15021, 15090];

/** Ports on which no listener for all addresses may stand: Envoy refuses a second listener on an address, and with it the whole update. */
export function reservedPorts({ inputs }: Pick<GenerateContext, "inputs">): ReadonlySet<number> {
  const mesh = inputs.mesh.get("mesh");
  return new Set([...BOOTSTRAP_PORTS, mesh?.proxyListenPort ?? 15001, mesh?.proxyInboundListenPort ?? 15006]);
}
