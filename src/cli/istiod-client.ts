import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { hostPort } from "../base/address.ts";
import { EdgeError, messageOf } from "../base/errors.ts";
import { tlsFaultOf } from "../base/tls-fault.ts";
import { judgeMesh } from "../config/mesh/load-mesh.ts";
import { readMeshFiles } from "../config/mesh/mesh-files.ts";
import type { Json } from "../debug/api-types.ts";
import { debugTokenPath } from "../serve/debug-token.ts";
import { parseHostPort } from "../settings/host-port.ts";
import { type Arguments, usageError } from "./arguments.ts";
import type { Flag, Host } from "./command.ts";
import { at } from "./json-path.ts";

/** Flags of commands that ask a running control plane. */
export const ISTIOD_FLAGS: readonly Flag[] = [
  { name: "istiod", value: "URL", about: "debug address of istiod (default $ISTIOD_DEBUG_ADDRESS, then listen.httpAddr of mesh.yaml)" },
  { name: "token-file", value: "FILE", about: "file with the debug token (default var/lib/istio/debug.token under $ISTIO_HOME)" },
];

/** A running control plane, seen through its debug pages. */
export interface IstiodClient {
  readonly address: string;
  /** Content of a page. The pages and their types are in `debug/api-types.ts`. */
  get<T>(path: string): Promise<T>;
  /** Asks for something to be done; `body` goes as JSON. */
  post<T>(path: string, body: object): Promise<T>;
}

const TIMEOUT_MS = 15_000;
const DEFAULT_PORT = 8080;

/** The base directory, as istiod finds it. */
export const baseDirOf = (host: Pick<Host, "env" | "cwd">): string => resolve(host.cwd, host.env.ISTIO_HOME || ".");

/** Finds the control plane of this machine, or the one that is named. Nothing is asked yet. */
export async function istiodClient(args: Arguments, host: Host): Promise<IstiodClient> {
  const address = await addressOf(args, host);
  const token = await tokenFor(address, args, host);
  return {
    address,
    get: <T>(path: string) => askPage<T>({ address, path, token }),
    post: <T>(path: string, body: object) => askPage<T>({ address, path, token, body }),
  };
}

/** What to show at the door, and the words for when it is refused. */
interface Token {
  readonly text: string;
  readonly refused: string;
}

const LOOPBACK = /^https?:\/\/(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?$/;

/** The token of this machine stays on it: another one gets only what `--token-file` names. */
async function tokenFor(address: string, args: Arguments, host: Host): Promise<Token> {
  const named = args.text("token-file");
  if (named === undefined && !LOOPBACK.test(address)) return { text: "", refused: "it runs on another machine, so none was sent" };
  const file = resolve(host.cwd, named ?? debugTokenPath(baseDirOf(host)));
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (named !== undefined || error.code === "EACCES")
      throw new EdgeError("file_unreadable", `the token file ${file} cannot be read: ${messageOf(error)}`, {
        hint: "run istioctl as the user that istiod runs as, or name a copy of the file with --token-file",
      });
    return "";
  });
  // Anything else cannot be sent in a header, and who refuses it would show it.
  if (!TOKEN.test(text.trim()))
    throw new EdgeError("file_unreadable", `what is in ${file} is no token: that is one line of printable characters`);
  return { text: text.trim(), refused: text === "" ? `there is no token in ${file}` : `the token in ${file} is not the right one` };
}

const TOKEN = /^[\x21-\x7e]{0,8192}$/;

async function addressOf(args: Arguments, host: Host): Promise<string> {
  const named = args.text("istiod") ?? host.env.ISTIOD_DEBUG_ADDRESS ?? "";
  if (named !== "") {
    const url = URL.parse(named.includes("://") ? named : `http://${named}`);
    if (url === null || !["http:", "https:"].includes(url.protocol))
      throw usageError(`${JSON.stringify(named)} is not an address of istiod such as http://127.0.0.1:8080`);
    return url.origin;
  }
  const listen = parseHostPort((await listenAddress(host)) || `:${DEFAULT_PORT}`);
  if (typeof listen === "string") return `http://127.0.0.1:${DEFAULT_PORT}`;
  const reached = ["", "0.0.0.0", "::"].includes(listen.host) ? "127.0.0.1" : listen.host;
  return `http://${hostPort(reached, listen.port)}`;
}

/** Where istiod of this base directory listens. A mesh.yaml that is wrong at present may still say it: istiod runs on with the one before. */
async function listenAddress(host: Host): Promise<string> {
  const files = await readMeshFiles(baseDirOf(host));
  const load = judgeMesh(files, { baseDir: baseDirOf(host), env: host.env });
  if (load.ok) return load.config.process.listen.httpAddr;
  const written = files.layers
    .map(({ content }) => at(content as Json, "listen", "httpAddr"))
    .findLast((address) => typeof address === "string");
  return host.env.HTTP_ADDR ?? (typeof written === "string" ? written : "");
}

interface Page {
  readonly address: string;
  readonly path: string;
  readonly token: Token;
  readonly body?: object;
}

async function askPage<T>({ address, path, token, body: sent }: Page): Promise<T> {
  const response = await fetch(`${address}${path}`, {
    ...(sent !== undefined && { method: "POST", body: JSON.stringify(sent) }),
    headers: {
      ...(token.text !== "" && { authorization: `Bearer ${token.text}` }),
      ...(sent !== undefined && { "content-type": "application/json" }),
    },
    redirect: "error",
    signal: AbortSignal.timeout(TIMEOUT_MS),
  }).catch((cause: unknown) => {
    throw unreachable(address, cause);
  });
  const body: unknown = await response.json().catch(() => undefined);
  if (response.ok && body !== undefined) return body as T;
  if (response.status === 401) {
    throw new EdgeError("control_plane_unreachable", `istiod at ${address} wants its debug token, and ${token.refused}`, {
      hint: "run istioctl with the ISTIO_HOME of istiod, or name the file with --token-file",
    });
  }
  const said = typeof body === "object" && body !== null && "error" in body ? String(body.error) : `status ${response.status}`;
  throw new EdgeError(response.status === 404 ? "not_found" : "control_plane_unreachable", `istiod at ${address} says: ${said}`);
}

function unreachable(address: string, cause: unknown): EdgeError {
  return new EdgeError("control_plane_unreachable", `cannot reach istiod at ${address} (${reasonOf(cause)})`, {
    cause,
    hint: "start it with `istiod`, or name its address with --istiod or ISTIOD_DEBUG_ADDRESS",
  });
}

/** Node's fetch puts the reason into the cause of its error. */
function reasonOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  if (cause instanceof Error && "code" in cause && cause.code === "ECONNREFUSED") return "connection refused";
  return tlsFaultOf(cause).trim() || "connection refused";
}
