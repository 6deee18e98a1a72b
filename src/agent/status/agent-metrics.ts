/** A number that the agent tells about itself. */
export interface AgentMetric {
  /** Without the prefix that all of them have. */
  readonly name: string;
  readonly type: "counter" | "gauge" | "histogram";
  values(): readonly {
    /** Which number of a histogram it is. */
    readonly of?: "_bucket" | "_sum" | "_count";
    readonly labels?: Readonly<Record<string, string>>;
    readonly value: number;
  }[];
}

const PREFIX = "istio_agent_";

/**
 * The metrics in Prometheus' text form, under Istio's prefix. In OpenMetrics a counter's name ends in `_total`, which its type leaves out; those of
 * Istio's that do not are of no known type there.
 */
export function agentMetricsText(metrics: readonly AgentMetric[], openMetrics: boolean): string {
  return metrics
    .map(({ name, type, values }) => {
      const isCounter = openMetrics && type === "counter";
      const family = `${PREFIX}${isCounter ? name.replace(/_total$/, "") : name}`;
      const lines = values().map(
        ({ of = "", labels, value }) => `${PREFIX}${name}${of}${labels === undefined ? "" : labelText(labels)} ${value}\n`,
      );
      return `# TYPE ${family} ${isCounter && !name.endsWith("_total") ? "unknown" : type}\n${lines.join("")}`;
    })
    .join("");
}

const labelText = (labels: Readonly<Record<string, string>>): string =>
  `{${Object.entries(labels)
    .map(([name, value]) => `${name}="${value.replaceAll(/["\\\n]/g, (one) => (one === "\n" ? "\\n" : `\\${one}`))}"`)
    .join(",")}}`;
