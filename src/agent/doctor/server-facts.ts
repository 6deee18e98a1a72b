import { connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { connect as connectTls, getCACertificates, type TLSSocket } from "node:tls";
import type { Clock } from "../../base/clock.ts";
import { messageOf } from "../../base/errors.ts";
import { tlsFaultOf } from "../../base/tls-fault.ts";
import type { AgentConfig } from "../agent-config.ts";
import { addressOf, type Target } from "../control-plane-address.ts";
import { findTrustRoots } from "../trust-roots.ts";
import { refusalOf } from "./refusal.ts";

/** What a server of the control plane showed of itself when it was called without any proof of who is calling, and what it said to that proof. */
export interface ServerFacts {
  readonly address: string;
  readonly target: Target;
  /** Undefined: it answers. */
  readonly unreachable?: string;
  /** Undefined: its certificate is good, or there is none because plaintext was asked for. */
  readonly unverified?: string;
  /** Why it does not take what this machine shows. */
  readonly refuses?: string;
  /** Since when its certificate is valid. */
  readonly validFrom?: number;
  /** Its clock, as far as it tells. */
  readonly time?: number;
}

const PATIENCE_MS = 5_000;

/** Calls every address of the control plane once; an address for both uses is called once. */
export async function callServers(config: AgentConfig, clock: Clock): Promise<readonly ServerFacts[]> {
  const targets = new Map([...config.discovery, ...config.ca].map((target) => [`${addressOf(target)} ${target.tls}`, target]));
  return Promise.all([...targets.values()].map((target) => callServer(target, config, clock)));
}

async function callServer(target: Target, config: AgentConfig, clock: Clock): Promise<ServerFacts> {
  const address = addressOf(target);
  if (!target.tls) {
    const unreachable = await tryTcp(target, clock);
    return { address, target, ...(unreachable !== undefined && { unreachable }) };
  }
  const named = config.ca.includes(target) && !config.discovery.includes(target) ? config.settings.caRoots : "";
  const roots = await findTrustRoots({ baseDir: config.baseDir, named: named || config.settings.xdsRoots, target, learned: "" }).catch(
    () => undefined,
  );
  const socket = await openTls(target, roots?.pem, clock).catch((error: unknown) => tlsFaultOf(error));
  if (typeof socket === "string") return { address, target, unreachable: socket };
  const validFrom = Date.parse(socket.getPeerCertificate().valid_from);
  const time = await timeOf(socket, clock);
  const reason = socket.authorizationError;
  const servesXds = config.discovery.some((other) => addressOf(other) === address);
  const refuses = socket.authorized && servesXds ? await refusalOf(target, { config, clock }) : undefined;
  return {
    address,
    target,
    ...(!socket.authorized && { unverified: reason instanceof Error ? reason.message : String(reason) }),
    ...(refuses !== undefined && { refuses }),
    ...(!Number.isNaN(validFrom) && { validFrom }),
    ...(time !== undefined && { time }),
  };
}

function tryTcp({ host, port }: Target, clock: Clock): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    const end = (reason: string | undefined): void => {
      cancel();
      socket.destroy();
      resolve(reason);
    };
    const cancel = clock.after(PATIENCE_MS, () => end(`no connection after ${PATIENCE_MS} ms`));
    socket.once("connect", () => end(undefined)).once("error", (error) => end(messageOf(error)));
  });
}

/** Whether it can be verified is looked at afterwards, so that there is more to say than that it cannot. */
function openTls({ host, port, serverName }: Target, roots: string | undefined, clock: Clock): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const ca = roots ?? getCACertificates("system");
    const trust = { ca, allowPartialTrustChain: true, rejectUnauthorized: false };
    const socket = connectTls({ host, port, servername: serverName, ALPNProtocols: ["h2"], ...trust });
    const cancel = clock.after(PATIENCE_MS, () => socket.destroy(new Error(`no connection after ${PATIENCE_MS} ms`)));
    socket.once("secureConnect", () => {
      cancel();
      resolve(socket);
    });
    socket.once("error", (error) => {
      cancel();
      reject(error);
    });
  });
}

/** Asks for its health, which anybody may, for the date on the answer. Not every server writes one. */
function timeOf(socket: TLSSocket, clock: Clock): Promise<number | undefined> {
  return new Promise((resolve) => {
    const session = connectHttp2("https://istiod", { createConnection: () => socket });
    const end = (date: string | undefined): void => {
      cancel();
      session.destroy();
      const time = Date.parse(date ?? "");
      resolve(Number.isNaN(time) ? undefined : time);
    };
    const cancel = clock.after(PATIENCE_MS, () => end(undefined));
    session.on("error", () => end(undefined));
    const stream = session.request({
      ":method": "POST",
      ":path": "/grpc.health.v1.Health/Check",
      "content-type": "application/grpc",
      te: "trailers",
    });
    stream
      .on("response", ({ date }) => end(date))
      .on("error", () => end(undefined))
      .on("close", () => end(undefined));
    stream.end(Buffer.alloc(5));
  });
}
