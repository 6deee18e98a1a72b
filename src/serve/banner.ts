import { join, relative } from "node:path";
import type { HostPort } from "../settings/host-port.ts";
import type { ControlPlane } from "./control-plane.ts";
import { isForThisMachine } from "./view-of-node.ts";

export interface BannerOptions {
  readonly program: string;
  readonly baseDir: string;
  readonly env: NodeJS.ProcessEnv;
  /** Somebody reads it as it is written. */
  readonly isTerminal: boolean;
  readonly plane: Pick<ControlPlane, "ports" | "sources" | "debugToken">;
}

/** Five lines at ready: where configuration is, what is read, who may call, where to look, what to try. */
export function bannerOf({ program, baseDir, env, isTerminal, plane }: BannerOptions): readonly string[] {
  const { grpc, secureGrpc, http, monitoring, webhooks } = plane.ports;
  const sources =
    plane.sources
      .states()
      .map(({ address }) => address)
      .join(", ") || "none";
  const dashboard =
    http === undefined ? "off (listen.httpAddr is empty)" : linkTo(`http://127.0.0.1:${http.port}/debug`, { env, isTerminal, plane });
  return [
    `${program} is ready: configuration in ${join(baseDir, "etc/istio")}`,
    `sources: ${sources}`,
    `ports: xDS ${show(grpc, whoMayCall(grpc))}, xDS and CA over TLS ${show(secureGrpc, "a token or certificate is needed")}, HTTP ${show(http, "debug pages need the token")}, metrics ${show(monitoring, "open")}${webhooks === undefined ? "" : `, webhooks ${show(webhooks, "for the API server")}`}`,
    `look inside: ${dashboard}`,
    `try: put a ServiceEntry and a VirtualService into ${shownFrom(process.cwd(), join(baseDir, "etc/istio/conf"))}, or run \`istioctl demo\``,
  ];
}

/** With the token, for the person who started it; what a pod or a unit of systemd prints is collected and read by others, so there the link says where the token is. */
function linkTo(page: string, { env, isTerminal, plane }: Pick<BannerOptions, "env" | "isTerminal" | "plane">): string {
  const isCollected = env.KUBERNETES_SERVICE_HOST !== undefined || (env.JOURNAL_STREAM !== undefined && !isTerminal);
  return isCollected ? `${page} (token in var/lib/istio/debug.token)` : `${page}?token=${plane.debugToken}`;
}

const show = (at: HostPort | undefined, who: string): string => (at === undefined ? "off" : `${at.host}:${at.port} (${who})`);

/** Of the plaintext port: where it is bound to this machine alone, to be on it is enough. */
const whoMayCall = (at: HostPort | undefined): string => (isForThisMachine(at?.host ?? "") ? "this machine only" : "a token is needed");

/** As one types it in `directory`: shorter where it lies below, and never with a way up and down again. */
function shownFrom(directory: string, path: string): string {
  const way = relative(directory, path);
  return way.startsWith("..") ? path : way || ".";
}
