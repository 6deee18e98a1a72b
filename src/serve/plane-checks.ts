import { meshProblemsSentence } from "../config/mesh/mesh-problems.ts";
import type { Parts } from "./control-plane.ts";
import type { HealthCheck } from "./health.ts";

/** How sources, mesh.yaml and documents are doing, for `/ready`. */
export function checksOf({ sources, mesh, store, serving }: Pick<Parts, "sources" | "mesh" | "store" | "serving">): readonly HealthCheck[] {
  const errors = store.problems().filter(({ level }) => level === "error").length;
  return [
    ...sources.states().map(({ address, loaded, failure }) => ({
      name: `source ${address}`,
      ok: loaded && failure === undefined,
      blocks: !loaded,
      detail: failure ?? (loaded ? "loaded" : "loading"),
    })),
    {
      name: "start",
      ok: serving.yes,
      blocks: !serving.yes,
      detail: serving.yes ? "proxies are served" : "the first configuration is being worked in",
    },
    {
      name: "mesh.yaml",
      ok: mesh.problems.length === 0,
      blocks: false,
      detail: mesh.problems.length === 0 ? "in force" : meshProblemsSentence(mesh.problems),
    },
    { name: "documents", ok: errors === 0, blocks: false, detail: errors === 0 ? "all valid" : `${errors} problems; see /debug/problems` },
  ];
}
