/** A number that the agent tells about itself. */
export interface AgentMetric {
  /** Without the prefix that all of them have. */
  readonly name: string;
  readonly type: "counter" | "gauge";
  values(): readonly { readonly labels?: Readonly<Record<string, string>>; readonly value: number }[];
}

const PREFIX = "istio_agent_";

/** The metrics in Prometheus' text form, under Istio's prefix. A counter's name ends in `_total`, which its type leaves out in OpenMetrics. */
export function agentMetricsText(metrics: readonly AgentMetric[], openMetrics: boolean): string {
  return metrics
    .map(({ name, type, values }) => {
      const family = `${PREFIX}${openMetrics && type === "counter" ? name.replace(/_total$/, "") : name}`;
      const lines = values().map(({ labels, value }) => `${PREFIX}${name}${labels === undefined ? "" : labelText(labels)} ${value}\n`);
      return `# TYPE ${family} ${type}\n${lines.join("")}`;
    })
    .join("");
}

const labelText = (labels: Readonly<Record<string, string>>): string =>
  `{${Object.entries(labels)
    .map(([name, value]) => `${name}="${value.replaceAll(/["\\\n]/g, (one) => (one === "\n" ? "\\n" : `\\${one}`))}"`)
    .join(",")}}`;
