import { join, relative } from "node:path";
import type { HostPort } from "../settings/host-port.ts";
import type { ControlPlane } from "./control-plane.ts";

export interface BannerOptions {
  readonly program: string;
  readonly baseDir: string;
  readonly env: NodeJS.ProcessEnv;
  readonly plane: Pick<ControlPlane, "ports" | "sources" | "debugToken">;
}

/** Five lines at ready: where configuration is, what is read, who may call, where to look, what to try. */
export function bannerOf({ program, baseDir, env, plane }: BannerOptions): readonly string[] {
  const { grpc, secureGrpc, http, monitoring, webhooks } = plane.ports;
  const sources =
    plane.sources
      .states()
      .map(({ address }) => address)
      .join(", ") || "none";
  const dashboard =
    http === undefined ? "off (listen.httpAddr is empty)" : linkTo(`http://127.0.0.1:${http.port}/debug/list`, { env, plane });
  return [
    `${program} is ready: configuration in ${join(baseDir, "etc/istio")}`,
    `sources: ${sources}`,
    `ports: xDS ${show(grpc, "this machine only")}, xDS and CA over TLS ${show(secureGrpc, "a token or certificate is needed")}, HTTP ${show(http, "debug pages need the token")}, metrics ${show(monitoring, "open")}${webhooks === undefined ? "" : `, webhooks ${show(webhooks, "for the API server")}`}`,
    `look inside: ${dashboard}`,
    `try: put a ServiceEntry and a VirtualService into ${relative(process.cwd(), join(baseDir, "etc/istio/conf")) || "etc/istio/conf"}, or run \`istioctl demo\``,
  ];
}

/** With the token, for the person who started it; what a pod prints is collected and read by others, so there the link says where the token is. */
function linkTo(page: string, { env, plane }: Pick<BannerOptions, "env" | "plane">): string {
  return env.KUBERNETES_SERVICE_HOST === undefined ? `${page}?token=${plane.debugToken}` : `${page} (token in var/lib/istio/debug.token)`;
}

const show = (at: HostPort | undefined, who: string): string => (at === undefined ? "off" : `${at.host}:${at.port} (${who})`);
