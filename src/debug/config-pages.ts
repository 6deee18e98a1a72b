import { finishSliced } from "../base/slice.ts";
import { KINDS } from "../config/kinds/index.ts";
import { messageRegistry } from "../wire/json.ts";
import type { WatchedKind } from "./api-mesh-types.ts";
import { configObjects } from "./config-objects.ts";
import type { DebugDeps } from "./debug-deps.ts";
import type { HttpAnswer } from "./http-route.ts";
import { meshState } from "./mesh-page.ts";
import { placed, problemRecord } from "./object-origin.ts";
import { findStreams, notConnected, ok, type Page } from "./page.ts";
import { reportedProxies } from "./reported-proxies.ts";

/** Pages about what users wrote. */
export const configPages = (deps: DebugDeps): readonly Page[] => [
  {
    path: "/debug/configz",
    about: "all configuration objects in force and where they are written; ?type=VirtualService and ?namespace=ns narrow it",
    divisible: true,
    answer: async (query) => {
      const filter = { type: query.get("type") ?? undefined, namespace: query.get("namespace") ?? undefined };
      return ok(configObjects(deps.store.list(), filter, await messageRegistry()));
    },
  },
  {
    path: "/debug/resourcesz",
    about: "the kinds of objects that are read",
    answer: () =>
      ok(
        KINDS.map(
          ({ group, versions, kind, writtenKind = kind }): WatchedKind => ({ group, version: versions[0] ?? "", kind: writtenKind }),
        ),
      ),
  },
  {
    path: "/debug/problems",
    about: "everything wrong with the configuration",
    answer: () => {
      const beside = deps.world.problems.all().map((problem) => placed(problem, deps.store));
      return ok([...deps.mesh.problems, ...deps.mesh.warnings, ...deps.store.problems(), ...beside].map(problemRecord));
    },
  },
  {
    path: "/debug/envoyfilterz",
    about:
      "what each patch of each EnvoyFilter does at connected proxies, and why those without effect have none; ?proxyID=name.namespace looks at one",
    answer: (query) => patchPage(deps, query.get("proxyID") ?? ""),
  },
  {
    path: "/debug/mesh",
    about: "mesh configuration and settings in force, and what waits for a restart",
    answer: async () => ok(meshState(deps.mesh, await messageRegistry())),
  },
];

async function patchPage({ xds, world, clock }: DebugDeps, wanted: string): Promise<HttpAnswer> {
  const streams = wanted === "" ? xds.state() : findStreams(xds.state(), wanted);
  if (streams === undefined) return notConnected(wanted);
  return ok(await finishSliced(world.patchReport(reportedProxies(xds, streams)), clock));
}
