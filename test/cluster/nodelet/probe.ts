import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { connect } from "node:net";
import { systemClock } from "../../../src/base/clock.ts";
import { openGrpcChannel } from "../../../src/wire/grpc-channel.ts";
import { type ContainerSpec, type Handler, portOf } from "./pod.ts";

/** A container as probes and hooks reach it. */
export interface ProbeTarget {
  readonly container: ContainerSpec;
  readonly address: string;
  /** Runs a command in the container; false where it fails or takes too long. */
  exec(command: readonly string[], timeoutMs: number): Promise<boolean>;
}

/** Does what a probe or hook says, from the node, and tells whether it went well. */
export async function runHandler(handler: Handler, target: ProbeTarget, timeoutMs: number): Promise<boolean> {
  const { exec, httpGet, tcpSocket, grpc, sleep } = handler;
  if (exec !== undefined) return target.exec(exec.command ?? [], timeoutMs);
  if (httpGet !== undefined) return getOver(httpGet, target, timeoutMs);
  if (tcpSocket !== undefined) return canConnect(tcpSocket.host ?? target.address, portOf(target.container, tcpSocket.port), timeoutMs);
  if (grpc !== undefined) return isServing(target.address, grpc, timeoutMs);
  if (sleep !== undefined) await systemClock.sleep(sleep.seconds * 1_000);
  return true;
}

function getOver(get: NonNullable<Handler["httpGet"]>, { container, address }: ProbeTarget, timeoutMs: number): Promise<boolean> {
  const { host = address, port, path = "/", scheme = "HTTP", httpHeaders = [] } = get;
  const options = {
    host,
    port: portOf(container, port),
    path,
    headers: { "user-agent": "kube-probe/1.34", ...Object.fromEntries(httpHeaders.map(({ name, value }) => [name, value])) },
    agent: false as const,
    signal: AbortSignal.timeout(timeoutMs),
  };
  return new Promise((resolve) => {
    const sent = scheme === "HTTPS" ? httpsRequest({ ...options, rejectUnauthorized: false }) : httpRequest(options);
    sent.once("response", (response) => {
      response.resume();
      resolve((response.statusCode ?? 0) >= 200 && (response.statusCode ?? 0) < 400);
    });
    sent.once("error", () => resolve(false)).end();
  });
}

function canConnect(host: string, port: number, timeoutMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const end = (result: boolean): void => {
      socket.destroy();
      resolve(result);
    };
    const socket = connect(port, host, () => end(true));
    socket.setTimeout(timeoutMs, () => end(false)).once("error", () => end(false));
  });
}

/** HealthCheckResponse with status SERVING. */
const SERVING = Buffer.of(0x08, 1);

async function isServing(address: string, { port, service = "" }: NonNullable<Handler["grpc"]>, timeoutMs: number): Promise<boolean> {
  const question = service === "" ? Buffer.alloc(0) : Buffer.concat([Buffer.of(0x0a, service.length), Buffer.from(service)]);
  try {
    const channel = await openGrpcChannel({ to: { host: address, port }, clock: systemClock });
    const answer = await channel.unary("/grpc.health.v1.Health/Check", question, { timeoutMs }).finally(() => channel.close());
    return answer.equals(SERVING);
  } catch {
    return false;
  }
}
