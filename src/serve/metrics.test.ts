import { assert, it } from "vitest";
import { LISTENER_TYPE } from "../wire/type-urls.ts";
import { causeOf } from "./change-log.ts";
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

it("walks over what is large once for a scrape, however many figures it gives", async () => {
  const metrics = createMetrics("1.0.0");
  const asked = { engine: 0, sharing: 0 };
  metrics.observe({
    services: () => 1,
    virtualServices: () => 2,
    engine() {
      asked.engine += 1;
      return { nodes: 3, edges: 4, inputs: 5 };
    },
    sharing() {
      asked.sharing += 1;
      return new Map([[LISTENER_TYPE, { classes: 6, bytes: 7 }]]);
    },
    meshReloadFailed: () => false,
    sourcesFailed: () => 0,
    patches: undefined,
  });
  for (let scrape = 1; scrape <= 2; scrape++) {
    const lines = (await metrics.text()).split("\n");
    assert.deepEqual(asked, { engine: scrape, sharing: scrape });
    assert.deepEqual(lines.filter((line) => /^istiod_(engine|xds_(classes|resource))/.test(line)).sort(), [
      "istiod_engine_edges 4",
      "istiod_engine_inputs 5",
      "istiod_engine_nodes 3",
      'istiod_xds_classes{type="lds"} 6',
      'istiod_xds_resource_bytes{type="lds"} 7',
    ]);
  }
});

it("counts pushes by a closed list of causes, which names no object", async () => {
  const summary = (...changed: readonly string[]) => ({ changed, added: [], removed: [], broken: [], durationMs: 1 });
  const cases: readonly [keys: readonly string[], cause: string][] = [
    [["VirtualService/shop/cart"], "config"],
    [["EndpointSlice/shop/cart-x1", "Pod/shop/cart-1@west"], "endpoint"],
    [["EndpointSlice/shop/cart-x1", "Service/shop/cart"], "service"],
    [["Secret/shop/cert", "ConfigMap/shop/ca"], "secret"],
    [["Secret/shop/cert", "Gateway/shop/edge"], "config"],
    [["Namespace//shop"], "namespace"],
  ];
  for (const [keys, cause] of cases) assert.equal(causeOf(summary(...keys)), cause);
  const metrics = createMetrics("1.0.0");
  for (const [keys] of cases) metrics.xds.triggered(causeOf(summary(...keys)));
  const lines = (await metrics.text()).split("\n").filter((line) => line.startsWith("pilot_push_triggers{"));
  assert.equal(lines.length, 5);
  assert.ok(lines.every((line) => /^pilot_push_triggers\{type="[a-z]+"\} \d$/.test(line)));
});
