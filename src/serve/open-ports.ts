import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { AuthnError } from "../authn/authn-error.ts";
import type { Clock } from "../base/clock.ts";
import { EdgeError } from "../base/errors.ts";
import type { ProcessConfig } from "../config/mesh/process-config.ts";
import { type HostPort, parseHostPort } from "../settings/host-port.ts";
import type { GrpcServer } from "../wire/grpc-server.ts";
import type { Parts, Ports } from "./control-plane.ts";
import { type EarlyPorts, openEarly } from "./early-ports.ts";
import { startFront } from "./front/front.ts";
import type { GrpcPorts } from "./grpc-ports.ts";
import { listenHttp } from "./http-server.ts";
import { pages } from "./pages.ts";

/** Opens the ports for people and for monitoring; what is open is added to `opened` at once, so that a failure later can close it. */
export async function openPages(
  parts: Parts,
  opened: Server[],
  { debugToken, ownNamespace }: { readonly debugToken: string; readonly ownNamespace: string },
): Promise<Pick<Ports, "http" | "monitoring">> {
  const { listen } = parts.mesh.current.process;
  const allowedHosts = parts.mesh.current.settings.debugHosts.split(",").flatMap((host) => host.trim() || []);
  const callers = { ownNamespace, namespaceOf: namespaceOfBearer(parts) };
  const routes = pages(parts);
  const open = async (address: string): Promise<HostPort | undefined> => {
    const at = addressOf(address);
    if (at === undefined) return undefined;
    const { clock, log } = parts.options;
    const server = await listenHttp({ host: at.host || "::", port: at.port, routes, debugToken, callers, allowedHosts, clock, log });
    opened.push(server);
    return { host: at.host, port: (server.address() as AddressInfo).port };
  };
  return { http: await open(listen.httpAddr), monitoring: await open(listen.monitoringAddr) };
}

/** Whose token it is, by the same rules as on the secure port. A token for one certificate is for nothing else. */
const namespaceOfBearer =
  ({ identity, metrics }: Parts) =>
  async (authorization: string, address: string): Promise<string | undefined> => {
    const header = (name: string): string | undefined => (name === "authorization" ? authorization : undefined);
    try {
      const { identity: who, once } = await identity.authenticate({ address, header, certificate: undefined });
      return once === undefined ? who.namespace : undefined;
    } catch (error) {
      if (!(error instanceof AuthnError)) throw error;
      metrics.identity.refused("debug", error.reason);
      return undefined;
    }
  };

/** Binds the ports for proxies, where this process serves them itself and not an Envoy in front of it. */
export function openEarlyPorts({ listen, services, sidecar }: ProcessConfig, clock: Clock): Promise<EarlyPorts> {
  const plain = services.xds && !sidecar ? [listen.grpcAddr] : [];
  const secure = (services.xds || services.ca) && !sidecar ? [listen.secureGrpcAddr] : [];
  return openEarly([...plain, ...secure].flatMap((address) => addressOf(address) ?? []).map(bindable), clock);
}

/** Serves proxies on their ports. */
export async function openGrpc(parts: Parts, grpc: GrpcPorts): Promise<Pick<Ports, "grpc" | "secureGrpc">> {
  const { listen, services, sidecar } = parts.mesh.current.process;
  return {
    grpc: services.xds && !sidecar ? await open(listen.grpcAddr, grpc.plain, grpc.early) : undefined,
    secureGrpc: await openSecure(parts, grpc),
  };
}

/** Serves proxies that prove who they are, where there is a certificate to show to them. */
export async function openSecure({ mesh, identity, options }: Parts, grpc: GrpcPorts): Promise<HostPort | undefined> {
  const { listen, services, sidecar } = mesh.current.process;
  const { tls } = identity;
  if (listen.secureGrpcAddr === "" || !(services.xds || services.ca)) return undefined;
  if (tls === undefined) {
    if (!identity.isIncomplete) options.log.warn("the secure port stays closed: there is neither a CA nor a certificate in etc/certs");
    return undefined;
  }
  if (sidecar) return openFront({ mesh, identity, options }, grpc);
  return open(listen.secureGrpcAddr, { listen: (port) => grpc.secure.listen(port, tls) }, grpc.early);
}

async function open(address: string, server: Pick<GrpcServer, "listen">, early: EarlyPorts): Promise<HostPort | undefined> {
  const at = addressOf(address);
  return at === undefined ? undefined : { host: at.host, port: await server.listen(await early.take(bindable(at))) };
}

const bindable = ({ host, port }: HostPort): string => `${host || "[::]"}:${port}`;

/** Puts an Envoy on the ports for proxies; gives the first of its addresses. */
async function openFront(
  { mesh, identity, options }: Pick<Parts, "mesh" | "identity" | "options">,
  grpc: GrpcPorts,
): Promise<HostPort | undefined> {
  const { listen } = mesh.current.process;
  const addresses = [listen.secureGrpcAddr, listen.legacyGrpcAddr].flatMap((address) => addressOf(address) ?? []);
  if (identity.tls === undefined || addresses.length === 0) return undefined;
  const front = await startFront({ ...options, settings: mesh.current.settings, addresses, server: grpc.secure, tls: identity.tls });
  grpc.closing.push(front.stop);
  return addresses[0];
}

/** An empty address turns a port off. */
function addressOf(text: string): HostPort | undefined {
  if (text === "") return undefined;
  const parsed = parseHostPort(text);
  if (typeof parsed === "string") throw new EdgeError("mesh_config_invalid", parsed);
  return parsed;
}

/** Closes a server without waiting for those who hold a connection. */
export const closeHttp = (server: Server): Promise<void> =>
  new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
