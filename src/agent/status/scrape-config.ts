import { EdgeError, messageOf } from "../../base/errors.ts";

/** A page with metrics of the application. */
export interface ScrapeTarget {
  readonly port: number;
  readonly path: string;
}

/** Ports of the proxy and its agent: their metrics are merged already, or there are none. */
const RESERVED: readonly number[] = [15_000, 15_001, 15_004, 15_006, 15_008, 15_020, 15_021, 15_053, 15_090];
const DEFAULT_PATH = "/metrics";
const DEFAULT_PORT = "80";

/**
 * Reads ISTIO_PROMETHEUS_ANNOTATIONS, which injection makes from `prometheus.io/*`: where the application's metrics are. Empty where there are none,
 * or where they are not to be scraped. Throws `EdgeError` for what cannot be meant, such as the agent itself.
 */
export function readScrapeTargets(json: string, ownPorts: readonly number[]): readonly ScrapeTarget[] {
  if (json.trim() === "") return [];
  let given: Record<string, unknown>;
  try {
    given = Object(JSON.parse(json)) as Record<string, unknown>;
  } catch (error) {
    throw wrong(messageOf(error));
  }
  if (String(given.scrape) === "false") return [];
  const listed = Array.isArray(given.targets) && given.targets.length > 0 ? (given.targets as unknown[]) : [given];
  return listed.map((one) => {
    const { port, path } = Object(one) as Record<string, unknown>;
    const number = Number(port || DEFAULT_PORT);
    if (!Number.isInteger(number) || number < 1 || number > 65_535) throw wrong(`${JSON.stringify(port)} is no port`);
    if (RESERVED.includes(number) || ownPorts.includes(number))
      throw wrong(`port ${number} is not the application's, but the proxy's or its agent's`);
    const text = typeof path === "string" && path !== "" ? path : DEFAULT_PATH;
    return { port: number, path: text.startsWith("/") ? text : `/${text}` };
  });
}

const wrong = (reason: string): EdgeError =>
  new EdgeError("usage", `ISTIO_PROMETHEUS_ANNOTATIONS cannot be used: ${reason}`, {
    hint: "injection makes it from the annotations prometheus.io/*",
  });
