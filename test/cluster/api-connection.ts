import type { IncomingMessage } from "node:http";
import { Agent, request } from "node:https";
import { KubeApiError } from "./kube-object.ts";

/** Where an API server is and as whom it is called. */
export interface ApiAccess {
  /** `https://127.0.0.1:6443` */
  readonly url: string;
  /** PEM of who signed its certificate. */
  readonly ca: string;
  readonly token: string;
}

/** One request. */
export interface ApiCall {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly body?: unknown;
  /** Of the body; JSON unless told. */
  readonly contentType?: string;
  readonly accept?: string;
  readonly signal?: AbortSignal;
}

/** What came of it. */
export interface ApiAnswer {
  /** The parsed body. */
  readonly body: unknown;
  /** Texts of the `Warning` headers, as kubectl prints them. */
  readonly warnings: readonly string[];
}

/** Calls an API server over connections that are kept. */
export interface ApiConnection {
  /** Throws `KubeApiError` for an answer that is no success. */
  call(call: ApiCall): Promise<ApiAnswer>;
  /** The answer as it comes, for watches. */
  open(call: ApiCall): Promise<IncomingMessage>;
  close(): void;
}

/** Makes no connection before the first call. */
export function connectToApi({ url, ca, token }: ApiAccess): ApiConnection {
  const agent = new Agent({ keepAlive: true, ca, maxSockets: 64 });
  const { hostname, port } = new URL(url);
  const open = (call: ApiCall): Promise<IncomingMessage> =>
    new Promise((resolve, reject) => {
      const body = call.body === undefined ? undefined : typeof call.body === "string" ? call.body : JSON.stringify(call.body);
      const headers = {
        authorization: `Bearer ${token}`,
        accept: call.accept ?? "application/json",
        ...(body !== undefined && { "content-type": call.contentType ?? "application/json", "content-length": Buffer.byteLength(body) }),
      };
      const path = call.path + queryOf(call.query);
      const { method, signal } = call;
      const sent = request({ agent, host: hostname, port, path, method, headers, ...(signal && { signal }) }, resolve);
      sent.once("error", reject).end(body);
    });
  return {
    open,
    async call(call) {
      const response = await open(call);
      const text = await readText(response);
      const status = response.statusCode ?? 0;
      if (status >= 300) throw errorOf(call, status, text);
      return { body: text === "" ? null : parse(text), warnings: warningsOf(response) };
    },
    close: () => agent.destroy(),
  };
}

/** The whole of an answer as text. */
export async function readText(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

/** What an answer that is no success says. */
export function errorOf({ method, path }: ApiCall, status: number, text: string): KubeApiError {
  const body = parse(text) as { readonly reason?: string; readonly message?: string } | string;
  const told = typeof body === "string" ? { message: body.trim() } : body;
  return new KubeApiError(status, told?.reason ?? "", `${method} ${path}: ${status}: ${told?.message ?? text}`);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function queryOf(query: ApiCall["query"] = {}): string {
  const params = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) if (value !== undefined) params.set(key, String(value));
  return params.size === 0 ? "" : `?${params}`;
}

/** `299 - "text"`, with quotes and backslashes escaped. */
function warningsOf(response: IncomingMessage): readonly string[] {
  const headers = response.headersDistinct.warning ?? [];
  return headers.flatMap((header) =>
    [...header.matchAll(/299 \S+ "((?:[^"\\]|\\.)*)"/g)].map(([, text = ""]) => text.replaceAll(/\\(.)/g, "$1")),
  );
}
