import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { World } from "../generate/world.ts";
import type { XdsServer } from "../xds/server.ts";
import { createGatewayNames, type GatewayNames } from "./gateway-names.ts";
import type { MeshState } from "./mesh-state.ts";
import { resolveName } from "./resolve-name.ts";

/** Keeps the gateways of other networks that are given by host name resolved, in the inputs of a world. */
export interface NetworkNames extends Pick<GatewayNames, "asked" | "stop"> {
  /** Configuration changed: other names may be wanted. */
  follow(): void;
}

export interface NetworkNamesOptions {
  readonly world: Pick<World, "engine" | "inputs" | "gatewayNames">;
  readonly xds: Pick<XdsServer, "push">;
  readonly mesh: MeshState;
  readonly clock: Clock;
  readonly log: Log;
}

/** Asks for nothing before `follow`; a name whose addresses change is pushed. */
export function createNetworkNames({ world, xds, mesh, clock, log }: NetworkNamesOptions): NetworkNames {
  const { names } = world.inputs;
  const found = (name: string, addresses: readonly string[]): void => {
    const changed = world.engine.batch(() => (addresses.length === 0 ? names.delete(name) : names.set(name, addresses)));
    if (changed) xds.push(`addresses of ${name}`, "networks");
  };
  const { follow, asked, stop } = createGatewayNames({ clock, log, resolve: resolveName, found });
  return { follow: () => follow(mesh.current.settings.resolveGateways ? world.gatewayNames() : []), asked, stop };
}
