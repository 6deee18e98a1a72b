import type { GenerateContext } from "../context.ts";

/**
 * Ports on which no listener for all addresses may stand: Envoy refuses a second listener on an address, and with it the whole update.
 * `bootstrap` are those of the listeners in the proxy's bootstrap.
 */
export function reservedPorts({ inputs }: Pick<GenerateContext, "inputs">, bootstrap: readonly number[]): ReadonlySet<number> {
  const mesh = inputs.mesh.get("mesh");
  return new Set([...bootstrap, mesh?.proxyListenPort ?? 15001, mesh?.proxyInboundListenPort ?? 15006]);
}
