import { createSlice } from "../base/slice.ts";
import type { StreamDump } from "../xds/state.ts";
import type { DebugDeps } from "./debug-deps.ts";
import { ok, type Page } from "./page.ts";
import { pushStatus } from "./push-status.ts";
import { sharingClasses } from "./sharing-classes.ts";

/** Pages about how the control plane itself is doing. */
export const insidePages = (deps: DebugDeps): readonly Page[] => [
  {
    path: "/debug/push_status",
    about: "what came of the last push, which proxies are behind, and what they refused",
    answer: () => ok(pushStatus(deps.lastPush(), deps.xds.state())),
  },
  {
    path: "/debug/classes",
    about: "how resources are shared between proxies, and which attributes split them",
    answer: async () => ok(sharingClasses(await dumps(deps))),
  },
  {
    path: "/debug/cachez",
    about: "counters of the engine: results held, runs, hits, cut-offs",
    answer: () => ok(deps.world.engine.stats()),
  },
];

/** What all proxies hold; others have their turn in between. */
async function dumps({ xds, clock }: DebugDeps): Promise<readonly StreamDump[]> {
  const pause = createSlice(clock);
  const found: StreamDump[] = [];
  for (const { id } of xds.state()) {
    const dump = xds.dump(id);
    if (dump !== undefined) found.push(dump);
    await pause();
  }
  return found;
}
