import type { Call } from "./calls.ts";
import { type EchoOptions, type EchoServer, httpEcho } from "./echo.ts";
import { type Istiod, type IstiodOptions, startIstiod } from "./istiod.ts";
import { freePort } from "./ports.ts";
import { listening, type ProxyOptions, type RunningProxy, startProxy } from "./proxy.ts";
import { SHOP_HOST, type ShopPorts, shopGateway, shopRoutes, shopService } from "./shop.ts";
import { eventually } from "./wait.ts";

/** Below etc/istio: the file with the routes, and the one with the service and its subsets. */
export const ROUTES_FILE = "conf/routes.yaml";
export const SERVICE_FILE = "conf/cart.yaml";

export interface ShopOptions {
  /** Routes of the VirtualService; without them there is none. */
  readonly http?: string;
  /** Whether the Envoy is the caller's sidecar (default) or the gateway in front. */
  readonly place?: "sidecar" | "gateway";
  readonly protocol?: "delta" | "sotw";
  readonly istiod?: IstiodOptions;
  /** What the server of the first version does. */
  readonly v1?: EchoOptions;
  /** Where Envoy finds its control plane, if it is not to call istiod directly. */
  readonly xdsPort?: (istiod: Istiod) => Promise<number>;
  /** Node metadata besides the usual. */
  readonly metadata?: ProxyOptions["metadata"];
}

/** A control plane, two real servers, and one real Envoy that takes requests for them. */
export interface ShopMesh {
  readonly istiod: Istiod;
  readonly proxy: RunningProxy;
  readonly v1: EchoServer;
  readonly v2: EchoServer;
  readonly ports: ShopPorts;
  /** Where a client calls the service. */
  readonly target: Call;
  /** Puts routes in force and resolves when a request shows that they are. */
  route(http: string, shown: () => Promise<boolean>): Promise<void>;
}

export async function startShop(options: ShopOptions = {}): Promise<ShopMesh> {
  const [v1, v2] = [await httpEcho("v1", options.v1), await httpEcho("v2")];
  const gateway = await freePort();
  const ports = { service: await freePort(), v1: v1.port, v2: v2.port };
  const istiod = await startIstiod({
    ...options.istiod,
    files: {
      [SERVICE_FILE]: shopService(ports),
      "conf/edge.yaml": shopGateway(gateway),
      ...(options.http !== undefined && { [ROUTES_FILE]: shopRoutes(options.http) }),
      ...options.istiod?.files,
    },
  });
  const atEdge = options.place === "gateway";
  const proxy = await startProxy({
    ...(atEdge
      ? ({ type: "router", name: "edge", address: "127.0.0.3", labels: { app: "edge" } } as const)
      : ({ type: "sidecar", name: "client", address: "127.0.0.1" } as const)),
    xdsPort: (await options.xdsPort?.(istiod)) ?? istiod.grpcPort,
    protocol: options.protocol ?? "delta",
    ...(options.metadata !== undefined && { metadata: options.metadata }),
  });
  const target = { port: atEdge ? gateway : ports.service, host: SHOP_HOST };
  await listening(target.port);
  return {
    istiod,
    proxy,
    v1,
    v2,
    ports,
    target,
    async route(http, shown) {
      await istiod.write(ROUTES_FILE, shopRoutes(http));
      await eventually("the new routes are in force", shown);
    },
  };
}
