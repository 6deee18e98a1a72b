import { assert, it } from "vitest";
import { LISTENER_TYPE } from "../wire/type-urls.ts";
import { createMetrics } from "./metrics.ts";

it("counts refusals by proxy for as long as the proxy is there, and in all for good", async () => {
  const metrics = createMetrics("1.0.0");
  const counted = async (): Promise<readonly string[]> =>
    (await metrics.text()).split("\n").filter((line) => /^pilot.*_reject.*\{/.test(line));
  for (const node of ["a", "a", "b"]) metrics.xds.rejected(LISTENER_TYPE, node);
  const all = 'pilot_total_xds_rejects{type="lds"} 3';
  assert.deepEqual(await counted(), [all, 'pilot_xds_lds_reject{node="a"} 2', 'pilot_xds_lds_reject{node="b"} 1']);
  metrics.xds.left("a");
  metrics.xds.left("never seen");
  assert.deepEqual(await counted(), [all, 'pilot_xds_lds_reject{node="b"} 1']);
});
