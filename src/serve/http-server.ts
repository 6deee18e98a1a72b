import { timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage, type Server } from "node:http";
import { hostPort } from "../base/address.ts";
import type { Clock } from "../base/clock.ts";
import { messageOf } from "../base/errors.ts";
import { listenError } from "../base/listen-error.ts";
import type { Log } from "../base/log.ts";
import type { HttpAnswer, HttpRoute } from "../debug/http-route.ts";
import { sendAnswer } from "./send-answer.ts";

export type { HttpAnswer, HttpRoute };

export interface HttpServerOptions {
  readonly host: string;
  readonly port: number;
  readonly routes: readonly HttpRoute[];
  readonly debugToken: string;
  /** Others who may look: those of the control plane's own namespace at all there is, the rest at what is theirs. Nobody where it is not said. */
  readonly callers?: PageCallers;
  /** Names under which protected pages may be asked for, besides loopback names: against pages of other sites that resolve to us. */
  readonly allowedHosts: readonly string[];
  readonly clock: Pick<Clock, "monotonic">;
  readonly log: Log;
}

/** Who asks for a page. */
export interface PageCallers {
  /** Of the control plane. */
  readonly ownNamespace: string;
  /** The namespace that the bearer of this `Authorization`, who calls from there, has proved to be of; undefined where it has proved nothing. */
  namespaceOf(authorization: string, address: string): Promise<string | undefined>;
}

const LOOPBACK_HOST = /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?$/;

/** Listens and resolves when ready; rejects with a sentence when the port cannot be had. GET, and POST of JSON where a route says so; no CORS. */
export async function listenHttp(options: HttpServerOptions): Promise<Server> {
  const routes = new Map(options.routes.map((route) => [route.path, route]));
  const server = createServer({ maxHeaderSize: 16_384, requestTimeout: 30_000 }, (request, response) => {
    const send = (result: HttpAnswer): Promise<void> =>
      sendAnswer(response, result, { clock: options.clock, headOnly: request.method === "HEAD" });
    answer(options, routes, request)
      .then(send)
      .catch((error: unknown) => {
        options.log.error({ path: pathOf(request), reason: messageOf(error) }, "a page failed");
        if (response.headersSent) response.destroy();
        else void send({ status: 500, body: { error: "internal error; the log has the reason" } });
      });
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", (cause) => reject(listenError(hostPort(options.host, options.port), cause)));
    server.listen(options.port, options.host, resolve);
  });
  return server;
}

/** Without what is asked beside it: a token may be among that. */
const pathOf = ({ url = "" }: IncomingMessage): string => url.split("?", 1)[0] ?? "";

async function answer(options: HttpServerOptions, routes: ReadonlyMap<string, HttpRoute>, request: IncomingMessage): Promise<HttpAnswer> {
  const url = URL.parse(request.url ?? "/", "http://host");
  if (url === null) return { status: 400, body: { error: "what is asked for is no path" } };
  const route = routes.get(url.pathname);
  if (route === undefined) return { status: 404, body: { error: `no such page: ${url.pathname}; /debug/list names them` } };
  const isPost = request.method === "POST";
  if ((route.method === "POST") !== isPost || (!isPost && request.method !== "GET" && request.method !== "HEAD"))
    return { status: 405, body: { error: `only ${route.method ?? "GET"} is served here` } };
  const give = route.open ? route.answer : await allowedAnswer(options, { route, request, url });
  if (typeof give !== "function") return give;
  if (!isPost) return give(url.searchParams);
  const body = await readJson(request);
  return body === undefined ? { status: 400, body: { error: "the body must be JSON, and say so" } } : give(url.searchParams, body);
}

const LARGEST_BODY = 64 * 1024;

/** The body of a request, null where there is none; undefined where it is not JSON. A page of another site cannot send that type without being asked first. */
async function readJson(request: IncomingMessage): Promise<unknown> {
  const { "content-length": length = "0", "transfer-encoding": chunked } = request.headers;
  if (length === "0" && chunked === undefined) return null;
  if (request.headers["content-type"]?.split(";")[0]?.trim() !== "application/json") return undefined;
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > LARGEST_BODY) return undefined;
    chunks.push(chunk);
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString("utf8"));
  } catch {
    return undefined;
  }
}

interface Asked {
  readonly route: HttpRoute;
  readonly request: IncomingMessage;
  readonly url: URL;
}

/** What gives this caller its page, or why it is given none. */
async function allowedAnswer(options: HttpServerOptions, { route, request, url }: Asked): Promise<HttpRoute["answer"] | HttpAnswer> {
  const host = request.headers.host ?? "";
  if (!LOOPBACK_HOST.test(host) && !options.allowedHosts.some((name) => host === name || host.replace(/:\d+$/, "") === name))
    return {
      status: 403,
      body: {
        error:
          "debug pages are not served under this host name; ISTIOD_DEBUG_HOSTS of istiod names those under which they are, besides loopback",
      },
    };
  const header = request.headers.authorization ?? "";
  const given = header.startsWith("Bearer ") ? header.slice(7) : (url.searchParams.get("token") ?? "");
  if (sameSecret(given, options.debugToken)) return route.answer;
  const namespace = header === "" ? undefined : await options.callers?.namespaceOf(header, request.socket.remoteAddress ?? "");
  if (namespace === undefined)
    return {
      status: 401,
      body: { error: "a debug token is needed: send `Authorization: Bearer` with the content of var/lib/istio/debug.token" },
    };
  // Who may look may not do: a proxy that runs beside the control plane would be given identities of others.
  const isOwn = namespace === options.callers?.ownNamespace && route.method === undefined && route.acts !== true;
  return isOwn
    ? route.answer
    : (route.within?.(namespace) ?? { status: 403, body: { error: `this page is not for callers of namespace ${namespace}` } });
}

function sameSecret(a: string, b: string): boolean {
  const left = Buffer.from(a);
  const right = Buffer.from(b);
  return left.length === right.length && timingSafeEqual(left, right);
}
