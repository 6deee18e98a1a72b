import { constants } from "node:crypto";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { createServer } from "node:https";
import { hostPort } from "../base/address.ts";
import type { Clock } from "../base/clock.ts";
import { messageOf } from "../base/errors.ts";
import { limitedLog } from "../base/limited-log.ts";
import { listenError } from "../base/listen-error.ts";
import type { Log } from "../base/log.ts";
import { messageRegistry } from "../wire/json.ts";
import type { TlsCredentials, TlsMaterial } from "../wire/tls-listener.ts";
import { type AdmissionReview, answerReview, readReview } from "./admission-review.ts";
import { type InjectionWorld, injectReview } from "./inject-review.ts";
import { type BodyBudget, bodyBudget, readBody } from "./read-body.ts";
import { validateObject } from "./validate-object.ts";
import type { WebhookMetrics } from "./webhook-metrics.ts";

export interface WebhookServerOptions {
  readonly host: string;
  readonly port: number;
  readonly tls: TlsCredentials;
  /** Undefined where pods are not injected here. */
  readonly injection: InjectionWorld | undefined;
  /** Whether objects are judged here. */
  readonly validates: boolean;
  readonly metrics: WebhookMetrics;
  readonly clock: Clock;
  readonly log: Log;
}

/** Requests in hand: many, since one that is sent slowly costs next to nothing. */
const MOST_AT_ONCE = 500;
/** Bytes of their bodies. */
const MOST_BYTES = 64 * 1024 * 1024;
const MOST_CONNECTIONS = 1_000;
/** Lines about requests that nobody understands, which anybody can cause, and how much of their path they show. */
const NOISES_PER_SECOND = 20;
const SHOWN_PATH = 200;
/** API servers keep connections for 90 s. Who closes them sooner does so now and then under a request, which then fails, and with it what a user applied. */
const IDLE_MS = 120_000;

/**
 * Serves the admission webhooks over TLS. Anybody may call: what comes is bounded in size, depth, time and number, and an answer says only what the
 * caller sent. Resolves when it listens; rejects with a sentence where the port cannot be had.
 */
export async function listenWebhooks(options: WebhookServerOptions): Promise<Server> {
  const noises = limitedLog(options.log, options.clock, NOISES_PER_SECOND);
  let busy = 0;
  const budget = bodyBudget(MOST_BYTES);
  const server = createServer(
    { ...contextOf(options.tls.current), maxHeaderSize: 16_384, requestTimeout: 5_000, headersTimeout: 5_000, handshakeTimeout: 5_000 },
    (request, response) => {
      if (busy >= MOST_AT_ONCE) return send(response, { status: 503, text: "too many requests at once" });
      busy += 1;
      void answer(options, request, { budget, noises })
        .catch((error: unknown): Answer => {
          options.log.error({ path: request.url, reason: messageOf(error) }, "a webhook failed");
          return { status: 500, text: "internal error; the log of istiod has the reason" };
        })
        .then((result) => send(response, result))
        .finally(() => {
          busy -= 1;
        });
    },
  );
  server.maxConnections = MOST_CONNECTIONS;
  server.keepAliveTimeout = IDLE_MS;
  const stop = options.tls.follow((material) => server.setSecureContext(contextOf(material)));
  server.once("close", stop);
  await new Promise<void>((resolve, reject) => {
    server.once("error", (cause) => {
      stop();
      reject(listenError(hostPort(options.host, options.port), cause));
    });
    server.listen(options.port, options.host, resolve);
  });
  return server;
}

/** What is sent back: `json` where it is given, else `text`. */
interface Answer {
  readonly status: number;
  readonly text: string;
  readonly json?: unknown;
}

interface Shared {
  readonly budget: BodyBudget;
  /** For what strangers cause. */
  readonly noises: Log;
}

async function answer(options: WebhookServerOptions, request: IncomingMessage, { budget, noises }: Shared): Promise<Answer> {
  const path = URL.parse(request.url ?? "/", "https://host")?.pathname ?? "";
  const asks = path === "/validate" ? "validate" : path === "/inject" || path.startsWith("/inject/") ? "inject" : undefined;
  if (path === "/ready") return { status: 200, text: "ok" };
  const isServed = asks === "validate" ? options.validates : asks === "inject" && options.injection !== undefined;
  if (!isServed) return { status: 404, text: "there is no such webhook here" };
  if (request.method !== "POST") return { status: 405, text: "only POST is served here" };
  if (asks === "inject") options.metrics.injectionRequested();
  const body = await readBody(request, options.clock, budget);
  const review = "fault" in body ? body.fault : readReview(body.value);
  if (typeof review === "string") {
    const status = "fault" in body ? body.status : 400;
    if (asks === "inject") options.metrics.injected("failed", 0);
    else options.metrics.validationHttpError(status);
    noises.warn({ path: path.slice(0, SHOWN_PATH), reason: review }, "a request to a webhook cannot be understood");
    return { status, text: review };
  }
  return { status: 200, text: "", json: asks === "inject" ? inject(options, review, path) : await validate(options, review) };
}

function inject({ injection, metrics, clock, log }: WebhookServerOptions, review: AdmissionReview, path: string): unknown {
  if (injection === undefined) return undefined;
  const began = clock.monotonic();
  const { answer: said, outcome, pod, reason } = injectReview(review.request, path, injection);
  metrics.injected(outcome, (clock.monotonic() - began) / 1_000);
  if (outcome === "failed") log.warn({ pod, reason }, "a pod cannot be injected");
  else log.debug({ pod, outcome, reason }, "a pod came for injection");
  return answerReview(review, said);
}

async function validate({ metrics, log }: WebhookServerOptions, review: AdmissionReview): Promise<unknown> {
  const { request } = review;
  const { answer: said, reason } = validateObject(request, request.kind.kind === "EnvoyFilter" ? await messageRegistry() : undefined);
  metrics.validated(request.kind, reason);
  if (reason !== undefined)
    log.info({ kind: request.kind.kind, namespace: request.namespace, name: request.name, reason }, "an object was refused");
  return answerReview(review, said);
}

/** A request that is not listened to is not read to its end either: the connection is closed behind the answer. */
function send(response: ServerResponse, { status, text, json }: Answer): void {
  response.writeHead(status, {
    "content-type": json === undefined ? "text/plain; charset=utf-8" : "application/json",
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    ...(status >= 400 && { connection: "close" }),
  });
  response.end(json === undefined ? text : JSON.stringify(json));
}

const contextOf = ({ chain, key }: TlsMaterial) => ({
  cert: chain,
  key: key.reveal(),
  minVersion: "TLSv1.2" as const,
  secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
});
