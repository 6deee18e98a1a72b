import type { IncomingMessage, ServerResponse } from "node:http";
import { pipeline, type Readable } from "node:stream";
import type { Clock } from "../../base/clock.ts";
import { messageOf } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { loopback } from "../loopback.ts";
import type { StandardMetrics } from "../metrics/standard-metrics.ts";
import { request } from "../node-http.ts";
import { type AgentMetric, agentMetricsText } from "./agent-metrics.ts";
import { MetricLines } from "./metric-lines.ts";
import type { ScrapeTarget } from "./scrape-config.ts";

export interface MergeOptions {
  /** Where Envoy's own metrics are; undefined where there is no Envoy. */
  readonly envoy: ScrapeTarget | undefined;
  readonly application: readonly ScrapeTarget[];
  readonly metrics: readonly AgentMetric[];
  /** What is made of Istio's metrics among Envoy's. */
  readonly standard: Pick<StandardMetrics, "page">;
  readonly clock: Clock;
  readonly log: Log;
}

/** What went wrong so far, by source. */
export interface ScrapeCounts {
  scrapes: number;
  readonly failures: { envoy: number; application: number };
}

const TEXT = "text/plain; version=0.0.4; charset=utf-8";
const OPEN_METRICS = "application/openmetrics-text";
const LARGEST = { envoy: 128 * 1024 * 1024, application: 10 * 1024 * 1024 } as const;
const DEFAULT_TIMEOUT_MS = 10_000;
/** Share of the time Prometheus gives that is left for sending what there is. */
const SHARE_FOR_SOURCES = 0.9;
/** Share of the time for sources within which each must begin to answer: all begin together, since the form of the page is theirs, and one that hangs must leave others time. */
const SHARE_TO_ANSWER = 0.8;

type Source = "envoy" | "application";

/**
 * One page of metrics: the agent's, Envoy's and the application's. They pass as streams; only Istio's among Envoy's are held. A source that fails costs its own metrics only,
 * and is counted. The form is the application's, because what is special about OpenMetrics (exemplars) comes from there.
 */
export function createMergedMetrics(options: MergeOptions): {
  handle(request: IncomingMessage, response: ServerResponse): Promise<void>;
  readonly counts: ScrapeCounts;
} {
  const counts: ScrapeCounts = { scrapes: 0, failures: { envoy: 0, application: 0 } };
  const failed = (source: Source, { port, path }: ScrapeTarget, reason: string): void => {
    counts.failures[source] += 1;
    options.log.warn({ port, path, reason }, `metrics of ${source === "envoy" ? "Envoy" : "the application"} cannot be had`);
  };
  return {
    counts,
    async handle(incoming, response) {
      counts.scrapes += 1;
      const late = new AbortController();
      const timeoutMs = timeoutOf(incoming);
      const cancel = options.clock.after(timeoutMs, () => late.abort(new Error("it took too long")));
      response.once("close", () => late.abort(new Error("the client is gone")));
      const scrape = async (source: Source, target: ScrapeTarget, accept: string): Promise<IncomingMessage | undefined> => {
        const silent = new AbortController();
        const answered = options.clock.after(timeoutMs * SHARE_TO_ANSWER, () => silent.abort(new Error("it did not answer in time")));
        try {
          return await open({ target, accept, incoming, signal: AbortSignal.any([late.signal, silent.signal]) });
        } catch (error) {
          failed(source, target, messageOf(error));
          return undefined;
        } finally {
          answered();
        }
      };
      const { envoy } = options;
      const accept = acceptOf(incoming.headers.accept ?? "");
      const query = (incoming.url ?? "").split("?")[1];
      const standard = options.standard.page({ all: query === undefined });
      const [ofEnvoy, ...ofApplication] = await Promise.all([
        envoy === undefined ? undefined : scrape("envoy", query === undefined ? envoy : { ...envoy, path: `${envoy.path}?${query}` }, TEXT),
        ...options.application.map((target) => scrape("application", target, accept)),
      ]);
      const types = ofApplication.flatMap((one) => (one === undefined ? [] : [formOf(one.headers["content-type"] ?? "")]));
      const form = new Set(types).size === 1 ? (types[0] ?? TEXT) : TEXT;
      const openMetrics = form !== TEXT;
      response.writeHead(200, { "content-type": form });
      response.write(agentMetricsText(options.metrics, openMetrics));
      const pass = async (source: Source, target: ScrapeTarget, body: IncomingMessage | undefined): Promise<void> => {
        if (body === undefined) return;
        const lines = new MetricLines({ atMostBytes: LARGEST[source], openMetrics, ...(source === "envoy" && { take: standard.take }) });
        const fault = await passOn(body, lines, response).catch(messageOf);
        if (fault !== undefined) failed(source, target, fault);
        if (source === "envoy") await writeTo(response, await standard.text(fault !== undefined));
      };
      if (envoy !== undefined) await pass("envoy", envoy, ofEnvoy);
      for (const [index, target] of options.application.entries()) await pass("application", target, ofApplication[index]);
      cancel();
      response.end(openMetrics ? "# EOF\n" : "");
    },
  };
}

/** Rejects where the source breaks off or is too large; what came before has been passed on. */
async function passOn(body: IncomingMessage, lines: MetricLines, response: ServerResponse): Promise<undefined> {
  for await (const chunk of unpacked(body)) {
    const text = lines.push(chunk as Buffer);
    if (text === undefined) throw new Error("they are too large");
    await writeTo(response, text);
  }
  await writeTo(response, lines.end());
  return undefined;
}

const PACKED = ["gzip", "x-gzip"];
const encodingOf = ({ headers }: IncomingMessage): string => (headers["content-encoding"] ?? "identity").trim().toLowerCase();

/** Nobody is asked to pack what does not leave the machine, but some do so anyway. */
function unpacked(body: IncomingMessage): Readable {
  return PACKED.includes(encodingOf(body)) ? pipeline(body, process.getBuiltinModule("node:zlib").createGunzip(), () => {}) : body;
}

/** Waits until the client has taken enough. */
async function writeTo(response: ServerResponse, text: string): Promise<void> {
  if (text === "" || response.destroyed || response.write(text)) return;
  await new Promise<void>((resolve) => {
    const go = (): void => {
      response.off("drain", go).off("close", go);
      resolve();
    };
    response.on("drain", go).on("close", go);
  });
}

/** Prometheus says how long it waits. */
function timeoutOf(incoming: IncomingMessage): number {
  const seconds = Number(incoming.headers["x-prometheus-scrape-timeout-seconds"]);
  return seconds > 0 && seconds < 600 ? seconds * 1_000 * SHARE_FOR_SOURCES : DEFAULT_TIMEOUT_MS;
}

/** Forms that can be joined line by line: text and OpenMetrics, never protobuf. In the order in which they were asked for. */
function acceptOf(header: string): string {
  const wanted = header
    .split(",")
    .map((one) => one.trim())
    .filter((one) => /^(text\/(\*|plain)|application\/openmetrics-text)\s*(;|$)/.test(one));
  return wanted.length === 0 ? "text/plain;version=0.0.4" : wanted.join(",");
}

function formOf(contentType: string): string {
  const [type = "", ...parameters] = contentType.split(";").map((part) => part.trim().toLowerCase());
  if (type !== OPEN_METRICS) return TEXT;
  const version = parameters.find((parameter) => parameter.startsWith("version="))?.slice(8) ?? "0.0.1";
  return version === "1.0.0" || version === "0.0.1" ? `${OPEN_METRICS}; version=${version}; charset=utf-8` : TEXT;
}

interface Opening {
  readonly target: ScrapeTarget;
  readonly accept: string;
  readonly incoming: IncomingMessage;
  readonly signal: AbortSignal;
}

/** Follows redirects to other paths, as Prometheus does; on other ports and hosts nobody said that there are metrics of the application. */
async function open(opening: Opening): Promise<IncomingMessage> {
  let { target } = opening;
  for (let redirects = 0; redirects <= MOST_REDIRECTS; redirects++) {
    const response = await ask({ ...opening, target });
    const { statusCode = 0, headers } = response;
    if (statusCode === 200) return response;
    response.resume();
    if (!REDIRECTS.includes(statusCode) || headers.location === undefined) throw new Error(`the answer was ${statusCode || "none"}`);
    const place = URL.parse(headers.location, `http://localhost:${target.port}${target.path}`);
    if (place === null || !isHere(place, target.port)) throw new Error(`the answer leads elsewhere: ${headers.location.slice(0, 200)}`);
    target = { port: target.port, path: `${place.pathname}${place.search}` };
  }
  throw new Error(`there are more than ${MOST_REDIRECTS} redirects`);
}

const MOST_REDIRECTS = 10;
const REDIRECTS: readonly number[] = [301, 302, 303, 307, 308];
const OWN_HOST = /^(localhost|127(\.\d+){3}|\[::1\])$/;

const isHere = ({ protocol, hostname, port }: URL, own: number): boolean =>
  protocol === "http:" && OWN_HOST.test(hostname) && Number(port || 80) === own;

/** Resolves with the response, its body not read yet; rejects where there is none, or it cannot be read. */
function ask({ target, accept, incoming, signal }: Opening): Promise<IncomingMessage> {
  const headers: Record<string, string> = { accept };
  for (const name of ["user-agent", "x-prometheus-scrape-timeout-seconds"] as const) {
    const value = incoming.headers[name];
    if (value !== undefined) headers[name] = String(value);
  }
  return new Promise((resolve, reject) => {
    const sent = request(
      { host: "localhost", lookup: loopback, port: target.port, path: target.path, headers, agent: false, signal },
      (response) => {
        const encoding = encodingOf(response);
        if (encoding === "identity" || PACKED.includes(encoding)) return resolve(response);
        response.resume();
        reject(new Error(`they are packed as ${encoding}`));
      },
    );
    sent.on("error", (error) => reject(signal.aborted && signal.reason instanceof Error ? signal.reason : error)).end();
  });
}
