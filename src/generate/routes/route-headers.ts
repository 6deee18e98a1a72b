import type { ProxyView } from "../../model/proxy.ts";
import type { GenerateContext } from "../context.ts";
import { narrowedProxyConfig, proxyConfigOf } from "../proxy-config.ts";

/** What a proxy's configuration (ProxyConfig proxyHeaders) says of the headers its routes add. */
export interface RouteHeaders {
  /** Tell servers which attempt a request is. */
  readonly attemptCount: boolean;
  /** Tell servers the host that was asked for, where a rule rewrites it. */
  readonly forwardHost: boolean;
}

/** What holds where nobody says anything: nearly always, so that one object stands for it. */
export const USUAL_HEADERS: RouteHeaders = { attemptCount: true, forwardHost: false };

/** A part of query ids: empty for the usual headers. */
export const routeHeadersId = ({ attemptCount, forwardHost }: RouteHeaders): string =>
  attemptCount && !forwardHost ? "" : `${attemptCount ? "" : "-attempts"}${forwardHost ? "+host" : ""}`;

/** Reads them from a proxy. */
export function defineRouteHeaders(ctx: Pick<GenerateContext, "engine" | "inputs">): (view: ProxyView) => RouteHeaders {
  const of = ctx.engine.query<string, RouteHeaders>({
    name: "routeHeaders",
    compute: (json) => {
      const headers = proxyConfigOf(ctx.inputs.mesh.get("mesh"), json)?.proxyHeaders;
      const attemptCount = headers?.attemptCount?.disabled !== true;
      const forwardHost = headers?.xForwardedHost?.enabled === true;
      return attemptCount && !forwardHost ? USUAL_HEADERS : { attemptCount, forwardHost };
    },
  });
  return (view) => of(narrowedProxyConfig(view.metadata.proxyConfig, ["proxyHeaders"]));
}
