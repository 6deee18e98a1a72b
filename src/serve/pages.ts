import { debugRoutes, indexRoutes } from "../debug/debug-routes.ts";
import { actingPages } from "./acting-pages.ts";
import { clusterStates } from "./cluster-states.ts";
import type { Parts } from "./control-plane.ts";
import { ISTIO_API_VERSION, VERSION } from "./generate-settings.ts";
import { readyRoute } from "./health.ts";
import type { HttpRoute } from "./http-server.ts";
import { joinTokenRoute } from "./join-tokens.ts";
import { statusRoute } from "./status-page.ts";

/** Everything served over HTTP, on both the debug and the monitoring port. */
export function pages(parts: Parts): readonly HttpRoute[] {
  const routes = [...openPages(parts), ...ownPages(parts), ...debugPages(parts), ...actingPages(parts)];
  return [...indexRoutes(routes), ...routes];
}

function openPages(parts: Parts): readonly HttpRoute[] {
  return [
    readyRoute(parts.checks),
    {
      path: "/version",
      open: true,
      about: "version of this control plane",
      answer: () => ({
        status: 200,
        body: { version: VERSION, istio: ISTIO_API_VERSION, program: parts.options.program, node: process.version },
      }),
    },
    {
      path: "/metrics",
      open: true,
      about: "metrics in Prometheus format",
      answer: async () => ({ status: 200, body: await parts.metrics.text(), contentType: parts.metrics.contentType }),
    },
  ];
}

function ownPages(parts: Parts): readonly HttpRoute[] {
  return [
    {
      path: "/debug/inject",
      open: false,
      about: "templates, values and selectors that pods are injected with",
      answer() {
        const shown = parts.injection.shown();
        return shown === undefined ? { status: 404, body: { error: "no pods are injected here" } } : { status: 200, body: shown };
      },
    },
    {
      path: "/debug/clusterz",
      open: false,
      about: "clusters that are read, and how they are doing",
      answer: () => ({ status: 200, body: clusterStates(parts.sources.states(), parts.mesh.current.settings.clusterId) }),
    },
    statusRoute({
      reports: parts.reports,
      sources: () => parts.sources.states().map(({ name }) => name),
      origin: (key) => parts.store.origin(key),
      clock: parts.options.clock,
    }),
    joinTokenRoute({
      baseDir: parts.options.baseDir,
      tokens: parts.identity.joinTokens,
      roots: parts.identity.roots,
      trustDomain: () => parts.mesh.current.mesh.trustDomain,
    }),
  ];
}

const debugPages = ({ store, world, xds, lastPush, mesh, options }: Parts): readonly HttpRoute[] =>
  debugRoutes({ store, world, xds, lastPush, mesh, clock: options.clock, instance: mesh.current.settings.podName || options.program });
