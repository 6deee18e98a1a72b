import { ageOf } from "../base/age.ts";
import type { Clock } from "../base/clock.ts";
import { meshProblemsSentence } from "../config/mesh/mesh-problems.ts";
import type { Parts } from "./control-plane.ts";
import type { HealthCheck } from "./health.ts";
import type { SourceState } from "./running-sources.ts";

/** What is asked how it is doing. */
export interface Checked extends Pick<Parts, "sources" | "mesh" | "store" | "serving"> {
  readonly clock: Pick<Clock, "now">;
}

/** How sources, mesh.yaml and documents are doing, for `/ready`. */
export function checksOf({ sources, mesh, store, serving, clock }: Checked): readonly HealthCheck[] {
  const errors = store.problems().filter(({ level }) => level === "error").length;
  return [
    ...sources.states().map((state) => ({
      name: `source ${state.address}`,
      ok: state.loaded && state.failure === undefined,
      blocks: !state.loaded,
      detail: sourceSentence(state, clock.now()),
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

/** What a source said stays in force when it fails: then how old that is counts. */
function sourceSentence({ loaded, failure, failingSince }: SourceState, now: number): string {
  if (failure === undefined) return loaded ? "loaded" : "loading";
  return loaded && failingSince !== undefined ? `stale for ${ageOf(now - failingSince)}: ${failure}` : failure;
}
