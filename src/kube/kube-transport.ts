import { type IncomingMessage, Agent as PlainAgent, request as plainRequest } from "node:http";
import { Agent, request } from "node:https";
import { createSecureContext } from "node:tls";
import type { Clock } from "../base/clock.ts";
import { messageOf } from "../base/errors.ts";
import type { KubeAccess } from "./kube-access.ts";
import type { KubeIdentity } from "./kube-credentials.ts";
import { KubeError } from "./kube-error.ts";

/** One HTTP request to an API server. */
export interface TransportRequest {
  readonly method: string;
  /** Path and query, below the server's address. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Asking twice does no harm. A kept connection may turn out to be dead; then it is asked again on a new one. */
  readonly repeatable: boolean;
  /** How long the head of the answer may take. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

/** Sends requests and gives the head of answers; their bodies are for the caller to read. */
export interface KubeTransport {
  send(request: TransportRequest): Promise<IncomingMessage>;
  /** Closes every connection. */
  close(): void;
}

/** A connection that carries nothing is kept this long. */
const KEEP_ALIVE_MS = 30_000;

type Pool = Agent | PlainAgent;

/**
 * Keeps connections to one API server. The pool belongs to the certificates it was opened with: when a file of them changes, new connections are
 * made with the new ones. HTTP/1.1: a watch has a connection of its own, so one that hangs holds up nobody else.
 */
export function createKubeTransport(access: KubeAccess, clock: Clock): KubeTransport {
  let pool: { readonly id: string; readonly agent: Pool } | undefined;
  const agentFor = async (identity: KubeIdentity): Promise<Pool> => {
    const ca = await access.ca?.read();
    const id = JSON.stringify([ca, identity.certificate]);
    if (pool?.id === id) return pool.agent;
    pool?.agent.destroy();
    const agent = access.server.startsWith("http://") ? new PlainAgent(KEPT) : tlsAgent(access, identity, ca);
    pool = { id, agent };
    return agent;
  };
  return {
    async send(wanted) {
      wanted.signal?.throwIfAborted();
      const answer = await attempt(wanted);
      if (answer.statusCode !== 401) return answer;
      answer.resume();
      access.credentials.refused();
      return attempt(wanted);
    },
    close: () => pool?.agent.destroy(),
  };

  async function attempt(wanted: TransportRequest): Promise<IncomingMessage> {
    const identity = await access.credentials.current();
    const agent = await agentFor(identity);
    const deal = { access, agent, identity, wanted, clock };
    return exchange(deal).catch((error) => {
      if (error instanceof DeadConnection && wanted.repeatable) return exchange(deal);
      throw error;
    });
  }
}

const KEPT = { keepAlive: true, keepAliveMsecs: KEEP_ALIVE_MS, maxFreeSockets: 4 } as const;

function tlsAgent({ serverName, insecure }: KubeAccess, { certificate, key }: KubeIdentity, ca: string | undefined): Agent {
  const withCertificate = certificate !== undefined && key !== undefined;
  return new Agent({
    ...KEPT,
    rejectUnauthorized: !insecure,
    ...(serverName !== undefined && { servername: serverName }),
    // Made once: left to itself each connection, and every watch has one, would read all certificates anew.
    secureContext: createSecureContext({
      ...(ca !== undefined && { ca }),
      ...(withCertificate && { cert: certificate, key: key.reveal() }),
    }),
  });
}

interface Exchange {
  readonly access: KubeAccess;
  readonly agent: Pool;
  readonly identity: KubeIdentity;
  readonly wanted: TransportRequest;
  readonly clock: Clock;
}

function exchange({ access, agent, identity, wanted, clock }: Exchange): Promise<IncomingMessage> {
  const { method, path, body, timeoutMs, signal } = wanted;
  const secrets = Object.entries(identity.headers).map(([name, value]) => [name, value.reveal()]);
  const headers = {
    ...wanted.headers,
    ...Object.fromEntries(secrets),
    ...(body !== undefined && { "content-length": String(Buffer.byteLength(body)) }),
  };
  const open = access.server.startsWith("http://") ? plainRequest : request;
  return new Promise((resolve, reject) => {
    const sent = open(`${access.server}${path}`, { method, agent, headers, ...(signal !== undefined && { signal }) });
    const cancel = clock.after(timeoutMs, () => {
      sent.destroy(
        new KubeError({ status: 0, reason: "TimedOut", message: `${access.server} gave no answer within ${timeoutMs / 1000} s` }),
      );
    });
    sent.once("response", (answer) => {
      cancel();
      resolve(answer);
    });
    sent.on("error", (error) => {
      cancel();
      const fault = transportFault(error, access.server);
      const dead = sent.reusedSocket && fault.reason === "Unreachable";
      reject(
        signal?.aborted === true
          ? signal.reason
          : dead
            ? new DeadConnection({ status: 0, reason: fault.reason, message: fault.message, cause: error })
            : fault,
      );
    });
    sent.end(body);
  });
}

/** A connection that was kept was closed at its other end before the request came there. */
class DeadConnection extends KubeError {}

/** A fault of the way to the server, in a sentence. */
export function transportFault(error: unknown, server: string): KubeError {
  if (error instanceof KubeError) return error;
  return new KubeError({ status: 0, reason: "Unreachable", message: `${server} cannot be reached: ${messageOf(error)}`, cause: error });
}
