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

it("counts responses by type, and those without content by themselves", async () => {
  const metrics = createMetrics("1.0.0");
  const event = { typeUrl: LISTENER_TYPE, bytes: 10, changed: 0, removed: 0, ms: 1 };
  for (const isGreeting of [false, true, false, true, true]) metrics.xds.sent({ ...event, isGreeting });
  const lines = (await metrics.text()).split("\n");
  assert.deepEqual(
    lines.filter((line) => /^(pilot_xds_pushes|pilot_xds_config_size_bytes_count|istiod_xds_greetings_total)\b/.test(line)).sort(),
    ["istiod_xds_greetings_total 3", 'pilot_xds_config_size_bytes_count{type="lds"} 2', 'pilot_xds_pushes{type="lds"} 2'],
  );
});
