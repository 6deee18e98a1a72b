import type { IncomingHttpHeaders } from "node:http";
import { connect } from "node:net";
import type { Readable } from "node:stream";
import { hostPort } from "../../base/address.ts";
import type { Clock } from "../../base/clock.ts";
import { messageOf } from "../../base/errors.ts";
import { textField } from "../../wire/field-writer.ts";
import { GrpcError, openGrpcChannel } from "../../wire/grpc-channel.ts";
import { GRPC_STATUS } from "../../wire/grpc-status.ts";
import type { AppProbe } from "./app-probes.ts";
import { askOverTls, askPlainly, type ProbeAnswer } from "./probe-call.ts";

export interface ProbeTarget {
  /** Where the application is: the workload's address, as the kubelet would call it. */
  readonly host: string;
  /** Address to call from, by which interception knows that the call is ours; undefined where nothing is intercepted. */
  readonly from: string | undefined;
  /** Port that the kubelet called instead of the application's. */
  readonly statusPort: number;
  readonly clock: Clock;
}

/** What the kubelet is told. */
export interface ProbeResult {
  readonly status: number;
  readonly body: string;
}

const MOST_REDIRECTS = 10;
const LARGEST_BODY = 10 * 1024;
const FAILED = 500;

type HttpProbe = Extract<AppProbe, { kind: "http" }>;

/** Runs a probe the way the kubelet would have: `headers` are those of its own request, which the application is to see. Never rejects. */
export async function runProbe(probe: AppProbe, target: ProbeTarget, headers: IncomingHttpHeaders): Promise<ProbeResult> {
  try {
    if (probe.kind === "http") return await probeHttp(probe, target, headers);
    if (probe.kind === "tcp") return await probeTcp(probe, target);
    return await probeGrpc(probe, target);
  } catch (error) {
    return { status: FAILED, body: `${messageOf(error)}\n` };
  }
}

async function probeHttp(probe: HttpProbe, target: ProbeTarget, headers: IncomingHttpHeaders): Promise<ProbeResult> {
  const deadline = target.clock.monotonic() + probe.timeoutMs;
  let url = new URL(`${probe.tls ? "https" : "http"}://${hostPort(target.host, probe.port)}${probe.path}`);
  const first = url.hostname;
  for (let redirects = 0; redirects <= MOST_REDIRECTS; redirects++) {
    const answer = await get({
      url,
      headers: probeHeaders(probe, headers, target.statusPort),
      from: target.from,
      leftMs: deadline - target.clock.monotonic(),
      clock: target.clock,
    });
    if (answer.location === undefined) return { status: answer.status, body: answer.body };
    url = new URL(answer.location, url);
    // Elsewhere it is somebody else's health; that the application answers is all that was asked.
    if (url.hostname !== first || !/^https?:$/.test(url.protocol)) return { status: 200, body: "" };
  }
  return { status: FAILED, body: `more than ${MOST_REDIRECTS} redirects\n` };
}

/** The kubelet's headers, with the host it would have called; those of the probe itself win. */
function probeHeaders(probe: HttpProbe, incoming: IncomingHttpHeaders, statusPort: number): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(incoming))
    if (value !== undefined && !/^(connection|keep-alive|transfer-encoding|content-length|upgrade|te|trailer)$/.test(name))
      headers[name] = String(value);
  // A host of the probe's own stays as it is; one that is ours was meant to be the application's.
  if (headers.host?.endsWith(`:${statusPort}`) === true) headers.host = `${headers.host.slice(0, -`:${statusPort}`.length)}:${probe.port}`;
  for (const { name, value } of probe.headers) headers[name.toLowerCase()] = value;
  return headers;
}

interface Get {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly from: string | undefined;
  readonly leftMs: number;
  readonly clock: Clock;
}

interface Got extends ProbeResult {
  /** Where a redirect leads. */
  readonly location: string | undefined;
}

function get({ url, headers, from, leftMs, clock }: Get): Promise<Got> {
  return new Promise((resolve, reject) => {
    const late = new AbortController();
    const cancel = clock.after(Math.max(1, leftMs), () => late.abort(new Error("the application did not answer in time")));
    const call = {
      host: url.hostname.replace(/^\[|\]$/g, ""),
      port: Number(url.port) || (url.protocol === "https:" ? 443 : 80),
      path: `${url.pathname}${url.search}`,
      headers,
      ...(from !== undefined && { localAddress: from }),
      signal: late.signal,
    };
    const take = ({ status, location, body, close }: ProbeAnswer): void =>
      readSome(body, (text) => {
        cancel();
        close();
        const isRedirect = status >= 300 && status < 400;
        resolve({ status: isRedirect && location === undefined ? 200 : status, body: text, location: isRedirect ? location : undefined });
      });
    const asked = url.protocol === "https:" ? askOverTls(call) : askPlainly(call);
    asked.then(take, (error: unknown) => {
      cancel();
      reject(late.signal.aborted ? late.signal.reason : error);
    });
  });
}

/** Waits for the end of the body, or for as much of it as is passed on. */
function readSome(response: Readable, done: (body: string) => void): void {
  const parts: Buffer[] = [];
  let size = 0;
  const end = (): void => done(Buffer.concat(parts).subarray(0, LARGEST_BODY).toString("utf8"));
  response.on("data", (part: Buffer) => {
    parts.push(part);
    size += part.length;
    if (size >= LARGEST_BODY) end();
  });
  response.on("end", end).on("error", end);
}

function probeTcp({ port, timeoutMs }: AppProbe, { host, from, clock }: ProbeTarget): Promise<ProbeResult> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, ...(from !== undefined && { localAddress: from }) });
    const end = (status: number, body: string): void => {
      cancel();
      socket.destroy();
      resolve({ status, body });
    };
    const cancel = clock.after(timeoutMs, () => end(FAILED, "no connection in time\n"));
    socket.once("connect", () => end(200, "")).once("error", (error) => end(FAILED, `${error.message}\n`));
  });
}

const HEALTH_METHOD = "/grpc.health.v1.Health/Check";
/** `HealthCheckResponse{status: SERVING}`. */
const SERVING = Buffer.of(0x08, 0x01);

async function probeGrpc(probe: Extract<AppProbe, { kind: "grpc" }>, { host, from, clock }: ProbeTarget): Promise<ProbeResult> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const cancel = clock.after(probe.timeoutMs, () => reject(new Error("the application did not answer in time")));
  const opening = openGrpcChannel({ to: { host, port: probe.port, ...(from !== undefined && { localAddress: from }) }, clock });
  try {
    const channel = await Promise.race([opening, late]);
    const answer = await Promise.race([channel.unary(HEALTH_METHOD, textField(1, probe.service), { timeoutMs: probe.timeoutMs }), late]);
    return SERVING.equals(answer) ? { status: 200, body: "" } : { status: FAILED, body: "the application says that it is not serving\n" };
  } catch (error) {
    if (error instanceof GrpcError && error.status === GRPC_STATUS.UNIMPLEMENTED)
      return { status: FAILED, body: "the application does not implement grpc.health.v1.Health\n" };
    throw error;
  } finally {
    cancel();
    opening.then(
      (channel) => channel.close(),
      () => {},
    );
  }
}
