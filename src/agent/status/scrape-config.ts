import { EdgeError, messageOf } from "../../base/errors.ts";

/** A page with metrics of the application. */
export interface ScrapeTarget {
  readonly port: number;
  readonly path: string;
}

/** Ports of the proxy and its agent: their metrics are merged already, or there are none. */
const RESERVED: readonly number[] = [15_000, 15_001, 15_004, 15_006, 15_008, 15_020, 15_021, 15_053, 15_090];
const STATUS_PORT = 15_020;
const DEFAULT_PATH = "/metrics";
const DEFAULT_PORT = "80";

/** Ports that are not the application's. */
export interface OwnPorts {
  /** The agent's: its page would ask for itself without end. */
  readonly status: number;
  readonly others: readonly number[];
}

/** Where the application's metrics are. */
export interface ScrapePlan {
  readonly targets: readonly ScrapeTarget[];
  /** A port that was named and is not asked, because it is the proxy's. */
  readonly leftOut?: number;
}

/**
 * Reads ISTIO_PROMETHEUS_ANNOTATIONS, which injection makes from `prometheus.io/*`. No targets where there are none, or where they are not to be scraped.
 * Throws `EdgeError` for what cannot be meant, such as the agent itself. The one port of old annotations may be the proxy's (15090, say): those were written before
 * metrics were merged, and keep no workload from starting.
 */
export function readScrapeTargets(json: string, own: OwnPorts): ScrapePlan {
  if (json.trim() === "") return { targets: [] };
  let given: Record<string, unknown>;
  try {
    given = Object(JSON.parse(json)) as Record<string, unknown>;
  } catch (error) {
    throw wrong(messageOf(error));
  }
  if (String(given.scrape) === "false") return { targets: [] };
  const isTaken = ({ port }: ScrapeTarget): boolean => port === own.status || RESERVED.includes(port) || own.others.includes(port);
  if (!Array.isArray(given.targets) || given.targets.length === 0) {
    const target = targetOf(given);
    if (!isTaken(target)) return { targets: [target] };
    if (target.port !== own.status && target.port !== STATUS_PORT) return { targets: [], leftOut: target.port };
    throw notOfApplication(target);
  }
  const targets = (given.targets as unknown[]).map(targetOf);
  const taken = targets.find(isTaken);
  if (taken !== undefined) throw notOfApplication(taken);
  return { targets };
}

function targetOf(one: unknown): ScrapeTarget {
  const { port, path } = Object(one) as Record<string, unknown>;
  const number = Number(port || DEFAULT_PORT);
  if (!Number.isInteger(number) || number < 1 || number > 65_535) throw wrong(`${JSON.stringify(port)} is no port`);
  const text = typeof path === "string" && path !== "" ? path : DEFAULT_PATH;
  return { port: number, path: text.startsWith("/") ? text : `/${text}` };
}

const notOfApplication = ({ port }: ScrapeTarget): EdgeError =>
  wrong(`port ${port} is not the application's, but the proxy's or its agent's`);

const wrong = (reason: string): EdgeError =>
  new EdgeError("usage", `ISTIO_PROMETHEUS_ANNOTATIONS cannot be used: ${reason}`, {
    hint: "injection makes it from the annotations prometheus.io/*",
  });
