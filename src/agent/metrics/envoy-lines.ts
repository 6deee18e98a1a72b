import { LIVE_SUFFIX, MESSAGES, RAW } from "../../model/standard-metrics.ts";

/** Upstream Envoy puts a prefix before names that are Istio's own. */
const OF_ENVOY = /^(?:# (?:TYPE|HELP) )?envoy_(istio_.*)$/;
const LIVE = new RegExp(`^(istio_tcp_\\w+_bytes)_${LIVE_SUFFIX}\\b`);
const ANNOUNCED = /^# TYPE (\S+) (\S+)$/;
const MESSAGE_LINE = new RegExp(`^istio_(request_|response_|)${MESSAGES}\\{(.*${RAW.messages}="(\\d+),(\\d+)".*)\\} (\\d+)$`);

/**
 * A line of Envoy's page as lines of Istio's metrics; undefined where it is none of them. What is told of connections while they last belongs to the metric that
 * others are counted in at their end; calls of gRPC are counted by how many messages they had in both directions.
 */
export function istioLines(line: string): readonly string[] | undefined {
  const name = OF_ENVOY.exec(line)?.[1];
  if (name === undefined) return undefined;
  const [, announced, type = ""] = ANNOUNCED.exec(line) ?? [];
  if (announced !== undefined) return announcement(announced.slice("envoy_".length), type);
  if (line.startsWith("#")) return [];
  if (name.includes(MESSAGES)) return messageLines(name);
  return [name.replace(LIVE, "$1_total")];
}

function announcement(name: string, type: string): readonly string[] {
  if (name.endsWith(MESSAGES)) return [];
  return [LIVE.test(name) ? `# TYPE ${name.replace(LIVE, "$1_total")} counter` : `# TYPE ${name} ${type}`];
}

/** Each direction is a metric of its own. */
function messageLines(line: string): readonly string[] {
  const [, direction, labels = "", sent = "", received = "", calls = ""] = MESSAGE_LINE.exec(line) ?? [];
  if (direction === undefined) return [];
  const counted = (name: string, messages: string): readonly string[] => [
    `# TYPE istio_${name}${MESSAGES} counter`,
    `istio_${name}${MESSAGES}{${labels}} ${Number(messages) * Number(calls)}`,
  ];
  return [
    ...(direction === "response_" ? [] : counted("request_", sent)),
    ...(direction === "request_" ? [] : counted("response_", received)),
  ];
}
