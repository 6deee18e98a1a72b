import type { DiscoveryStream, DiscoveryStreamEvents } from "../wire/discovery-stream.ts";
import { createGrpcServer, DELTA_SECRETS_METHOD, type GrpcServer, SECRETS_METHOD } from "../wire/grpc-server.ts";
import { GRPC_STATUS } from "../wire/grpc-status.ts";
import { authenticatedStreams } from "./authenticated-streams.ts";
import type { Parts } from "./control-plane.ts";
import { isLocal } from "./view-of-node.ts";

/** The two gRPC servers; nothing is bound yet. */
export interface GrpcPorts {
  /** Discovery alone: for this machine, and for others by token. */
  readonly plain: GrpcServer;
  /** Discovery, secrets and the CA, for callers who have proved who they are. */
  readonly secure: GrpcServer;
}

type PortParts = Pick<Parts, "options" | "mesh" | "sources" | "xds" | "identity" | "callers" | "metrics">;

export function createGrpcPorts(parts: PortParts): GrpcPorts {
  const { mesh, xds, identity, callers, metrics, sources } = parts;
  const { clock, log } = parts.options;
  const { keepaliveMs, keepaliveTimeoutMs, maxRequestBytes, maxStreams } = mesh.current.settings;
  const shared = {
    healthy: () => sources.loaded,
    clock,
    settings: { keepaliveMs, keepaliveTimeoutMs, maxRequestBytes, maxStreams },
  };
  const accept = authenticatedStreams({
    authenticate: identity.authenticate,
    callers,
    accept: xds.accept,
    refused(peer, error) {
      metrics.identity.refused("xds", error.reason);
      log.info({ peer: peer.address, reason: error.message }, "a proxy was turned away");
    },
  });
  return {
    plain: createGrpcServer({ ...shared, accept: (stream) => (isLocal(stream.peer.address) ? xds.accept(stream) : accept(stream)) }),
    secure: createGrpcServer({
      ...shared,
      accept: mesh.current.process.services.xds ? accept : notServed,
      discoveryPaths: { [SECRETS_METHOD]: "sotw", [DELTA_SECRETS_METHOD]: "delta" },
      methods: identity.methods,
    }),
  };
}

/** A control plane that only signs. */
function notServed(stream: DiscoveryStream): DiscoveryStreamEvents {
  stream.close(GRPC_STATUS.UNIMPLEMENTED, "this control plane serves no configuration");
  return { message() {}, ended() {} };
}
