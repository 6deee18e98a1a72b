import type { GenerateContext } from "../context.ts";

/** Where incoming connections are redirected to, unless the mesh names another port. */
export const INBOUND_PORT = 15_006;

/**
 * Ports on which no listener for all addresses may stand: Envoy refuses a second listener on an address, and with it the whole update.
 * `bootstrap` are those of the listeners in the proxy's bootstrap.
 */
export function reservedPorts({ inputs }: Pick<GenerateContext, "inputs">, bootstrap: readonly number[]): ReadonlySet<number> {
  const mesh = inputs.mesh.get("mesh");
  return new Set([...bootstrap, mesh?.proxyListenPort ?? 15001, mesh?.proxyInboundListenPort || INBOUND_PORT]);
}
