import { limitedLog } from "../base/limited-log.ts";
import type { LoadedMesh } from "../config/mesh/load-mesh.ts";
import { parseHostPort } from "../settings/host-port.ts";
import type { DiscoveryStream, DiscoveryStreamEvents, Peer } from "../wire/discovery-stream.ts";
import {
  createGrpcServer,
  DELTA_SECRETS_METHOD,
  type GrpcServer,
  HEALTH_METHOD,
  SECRETS_METHOD,
  SOTW_METHOD,
  type UnaryMethod,
} from "../wire/grpc-server.ts";
import { GRPC_STATUS } from "../wire/grpc-status.ts";
import type { Misbehaviour } from "../wire/misbehaviour.ts";
import { authenticatedStreams } from "./authenticated-streams.ts";
import type { Parts } from "./control-plane.ts";
import { debugAnswers } from "./debug-answers.ts";
import { debugStreams } from "./debug-streams.ts";
import type { EarlyPorts } from "./early-ports.ts";
import { forwardedPeer } from "./front/forwarded-peer.ts";
import { VERSION } from "./generate-settings.ts";
import { pages } from "./pages.ts";
import { reflection } from "./reflection.ts";
import { REFUSALS_PER_SECOND } from "./told-refusals.ts";
import { isForThisMachine } from "./view-of-node.ts";

/** The two gRPC servers. */
export interface GrpcPorts {
  /** The ports that they are to serve. */
  readonly early: EarlyPorts;
  /** Discovery alone: for this machine, and for others by token. */
  readonly plain: GrpcServer;
  /** Discovery, secrets and the CA, for callers who have proved who they are. */
  readonly secure: GrpcServer;
  /** What else is to be ended with them. */
  readonly closing: (() => Promise<void>)[];
}

export interface GrpcPortsOptions {
  readonly early: EarlyPorts;
  /** Of the control plane: callers of it are shown everything there is to see. */
  readonly ownNamespace: string;
}

/** Makes the servers; they serve nobody yet. */
export function createGrpcPorts(parts: Parts, { early, ownNamespace }: GrpcPortsOptions): GrpcPorts {
  const { mesh, xds, identity, callers, metrics, sources } = parts;
  const { clock, log } = parts.options;
  const { keepaliveMs, keepaliveTimeoutMs, maxRequestBytes, maxStreams } = mesh.current.settings;
  const shared = {
    healthy: () => sources.loaded,
    clock,
    misbehaved: (how: Misbehaviour) => metrics.identity.refused("connection", how),
    settings: { keepaliveMs, keepaliveTimeoutMs, maxRequestBytes, maxStreams },
  };
  const refusals = limitedLog(log, clock, REFUSALS_PER_SECOND);
  const questions = debugStreams({
    callers,
    namespace: ownNamespace,
    answer: debugAnswers({ xds, routes: () => pages(parts), clock }),
    controlPlane: controlPlaneName(mesh.current.settings.podName || parts.options.program),
    clock,
  });
  const accept = authenticatedStreams({
    authenticate: identity.authenticate,
    callers,
    accept: (stream) => xds.accept(stream, questions),
    refused(peer, error) {
      metrics.identity.refused("xds", error.reason);
      refusals.info({ peer: peer.address, reason: error.message }, "a proxy was turned away");
    },
  });
  // Behind an Envoy of our own, which is the only one that can call, callers are those it speaks for.
  const behind = mesh.current.process.sidecar ? forwardedPeer : (peer: Peer): Peer => peer;
  const methods = Object.entries(identity.methods).map(([path, method]): [string, UnaryMethod] => [
    path,
    (request, peer) => method(request, behind(peer)),
  ]);
  const discovers = mesh.current.process.services.xds;
  return {
    early,
    closing: [],
    plain: createGrpcServer({ ...shared, accept: isForThisMachine(boundHost(mesh.current)) ? (stream) => xds.accept(stream) : accept }),
    secure: createGrpcServer({
      ...shared,
      accept: discovers ? (stream) => accept({ ...stream, peer: behind(stream.peer) }) : notServed,
      discoveryPaths: { [SECRETS_METHOD]: "sotw", [DELTA_SECRETS_METHOD]: "delta" },
      methods: Object.fromEntries(methods),
      dialogues: reflection({
        methods: [...(discovers ? [SOTW_METHOD, SECRETS_METHOD] : []), ...Object.keys(identity.methods), HEALTH_METHOD],
        authenticate: (peer) => identity.authenticate(behind(peer)),
        refused: (error) => metrics.identity.refused("reflection", error.reason),
      }),
    }),
  };
}

/** Where the plaintext port is. */
function boundHost({ process }: LoadedMesh): string {
  const at = parseHostPort(process.listen.grpcAddr);
  return typeof at === "string" ? "" : at.host;
}

/** Who answers Istio's tools, in the form they read. */
const controlPlaneName = (id: string): string => JSON.stringify({ Component: "istiod", ID: id, Info: { version: VERSION } });

/** A control plane that only signs. */
function notServed(stream: DiscoveryStream): DiscoveryStreamEvents {
  stream.close(GRPC_STATUS.UNIMPLEMENTED, "this control plane serves no configuration");
  return { message() {}, ended() {} };
}
