import { join } from "node:path";
import type { Clock } from "../base/clock.ts";
import { EdgeError, messageOf } from "../base/errors.ts";
import type { Secret } from "../base/secret.ts";
import { type CallHeaders, type GrpcChannel, openGrpcChannel } from "../wire/grpc-channel.ts";
import { addressOf, type Target } from "./control-plane-address.ts";
import { findTrustRoots } from "./trust-roots.ts";
import { MESH_TOKEN, readWorkloadToken, unreadableToken, unusableToken } from "./workload-token.ts";

/** What the workload shows of itself. */
export interface ClientCertificate {
  readonly chain: string;
  readonly key: Secret<string>;
}

/** Who we are at the moment, as far as servers are to know. */
export interface Credentials {
  /** Undefined before the first certificate and after one has ended. */
  certificate(): ClientCertificate | undefined;
  /** Roots of the mesh that came with it. */
  roots(): string;
}

export interface DialerOptions {
  readonly baseDir: string;
  readonly targets: readonly Target[];
  /** Setting that names the file of roots. */
  readonly namedRoots: string;
  readonly clusterId: string;
  readonly credentials: Credentials;
  /** What is shown and trusted while there is no certificate. */
  provisioned?(): Promise<{ readonly certificate: ClientCertificate; readonly roots: string } | undefined>;
  /** Headers of the user's on every call; ours count where names are the same. */
  readonly headers?: CallHeaders;
  readonly clock: Clock;
}

/** A connection with the headers that prove who is calling. */
export interface Connection {
  readonly channel: GrpcChannel;
  readonly headers: CallHeaders;
  readonly address: string;
}

/** Calls one of several addresses; the next attempt after a failure goes to the next one. */
export interface Dialer {
  /** Rejects with `EdgeError`, in a sentence that says what to do. */
  dial(): Promise<Connection>;
  /** The address that answered turned out to be of no use. */
  avoid(address: string): void;
}

/** Calls the targets in turn, with whatever credentials there are at that moment. */
export function createDialer(options: DialerOptions): Dialer {
  const { targets } = options;
  let turn = 0;
  return {
    async dial() {
      const target = targets[turn % targets.length];
      if (target === undefined) throw new EdgeError("control_plane_unreachable", "there is no address to call");
      try {
        return await connect(target, options);
      } catch (error) {
        turn += 1;
        throw error;
      }
    },
    avoid(address) {
      const target = targets[turn % targets.length];
      if (target !== undefined && addressOf(target) === address) turn += 1;
    },
  };
}

async function connect(target: Target, options: DialerOptions): Promise<Connection> {
  const { baseDir, namedRoots, credentials, clusterId, clock } = options;
  const address = addressOf(target);
  const headers: Record<string, string> = { ...options.headers, clusterid: clusterId };
  if (!target.tls) {
    delete headers.authorization;
    const channel = await openGrpcChannel({ to: target, clock }).catch((error: unknown) => unreachable(address, error));
    return { channel, headers, address };
  }
  const own = credentials.certificate();
  const provisioned = own === undefined ? await options.provisioned?.() : undefined;
  const learned = credentials.roots() || provisioned?.roots || "";
  const roots = await findTrustRoots({ baseDir, named: namedRoots, target, learned });
  // A token travels only where it cannot be read on the way.
  const token = await readWorkloadToken(baseDir);
  if (token !== undefined) headers.authorization = `Bearer ${token.reveal()}`;
  const client = own ?? provisioned?.certificate;
  if (token === undefined && client === undefined) throw await nothingToShow(baseDir);
  const tls = { roots: roots.pem, serverName: target.serverName, ...(client !== undefined && { client }) };
  const channel = await openGrpcChannel({ to: target, tls, clock }).catch((error: unknown) => unreachable(address, error, roots.from));
  return { channel, headers, address };
}

async function nothingToShow(baseDir: string): Promise<EdgeError> {
  const hidden = await unreadableToken(baseDir);
  if (hidden !== undefined) return new EdgeError("file_unreadable", hidden, { hint: "make it this user's, who runs the agent" });
  const unusable = await unusableToken(baseDir);
  return new EdgeError("file_unreadable", unusable ?? "there is neither a token nor a certificate to show to the control plane", {
    hint: `a token for audience istio-ca belongs in ${join(baseDir, MESH_TOKEN)}`,
  });
}

const UNVERIFIED = /certificate|altnames|self.signed|verify/i;
const AT_ANOTHER_TIME = /certificate (has expired|is not yet valid)/;

function unreachable(address: string, error: unknown, rootsFrom?: string): never {
  const reason = messageOf(error);
  if (rootsFrom !== undefined && UNVERIFIED.test(reason))
    throw new EdgeError("control_plane_unreachable", `${address} cannot be verified with the roots of ${rootsFrom}: ${reason}`, {
      hint: AT_ANOTHER_TIME.test(reason)
        ? "look at the clocks of both machines; istio-agent doctor compares them"
        : "XDS_ROOT_CA and CA_ROOT_CA name other roots, ISTIOD_SAN another name",
    });
  throw new EdgeError("control_plane_unreachable", `${address} does not answer: ${reason}`);
}
