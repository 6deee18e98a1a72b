import { expect, it } from "vitest";
import { agentMetricsText } from "./agent-metrics.ts";
import { Histogram } from "./histogram.ts";

it("counts what is at most as large as each bound", () => {
  const histogram = new Histogram([0.1, 1]);
  for (const value of [0.05, 0.1, 0.5, 7]) histogram.observe(value);
  expect(agentMetricsText([histogram.metric("dns_seconds")], false)).toBe(
    [
      "# TYPE istio_agent_dns_seconds histogram",
      'istio_agent_dns_seconds_bucket{le="0.1"} 2',
      'istio_agent_dns_seconds_bucket{le="1"} 3',
      'istio_agent_dns_seconds_bucket{le="+Inf"} 4',
      "istio_agent_dns_seconds_sum 7.65",
      "istio_agent_dns_seconds_count 4\n",
    ].join("\n"),
  );
});
