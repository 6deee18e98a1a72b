import { connect, createServer, type Server, type Socket } from "node:net";
import { hostPort } from "../../base/address.ts";
import type { Clock } from "../../base/clock.ts";
import { messageOf } from "../../base/errors.ts";
import type { InterceptOptions } from "./intercept-options.ts";
import type { Family } from "./intercept-rules.ts";

export interface InterceptionProbe extends Pick<InterceptOptions, "mode" | "outboundPort" | "inboundPort"> {
  readonly family: Family;
  /** Port that is called; nobody needs to listen there. */
  readonly probePort: number;
  readonly timeoutMs: number;
}

/** Rules leave the first alone; what the proxy's user sends to the second is taken for inbound. Both are of the machine itself. */
const ADDRESSES = { 4: { own: "127.0.0.1", called: "127.0.0.6" }, 6: { own: "::1", called: "::6" } } as const;
const ATTEMPT_MS = 1_000;
const PAUSE_MS = 200;
/** A connection is accepted in the kernel before the listener hears of it. */
const ARRIVAL_MS = 250;

/**
 * Whether rules are in force, whoever made them, found out by traffic: the capture ports are listened on, and a connection to 127.0.0.6 (`::6`) must
 * arrive there. It is told by its source port, which only that connection has: what it was meant for is known, since it is ours. Needs no privileges, but must run as the
 * proxy's user, the only one whose calls to the own machine are taken. Gives a reason where nothing arrived in time; rules that are about to be made are waited for.
 */
export async function probeInterception(probe: InterceptionProbe, clock: Clock): Promise<string | undefined> {
  const arrived = new Set<number>();
  const { own } = ADDRESSES[probe.family];
  const listeners = await Promise.all([probe.outboundPort, probe.inboundPort].map((port) => listen(own, port, arrived)));
  try {
    const faults = listeners.filter((listener) => typeof listener === "string");
    if (faults.length === listeners.length) return faults.join("; ");
    const deadline = clock.monotonic() + probe.timeoutMs;
    for (;;) {
      const outcome = await attempt(probe, arrived, clock);
      if (outcome === undefined) return undefined;
      if (clock.monotonic() + PAUSE_MS >= deadline) return outcome;
      await clock.sleep(PAUSE_MS);
    }
  } finally {
    for (const listener of listeners) if (typeof listener !== "string") listener.close();
  }
}

function listen(host: string, port: number, arrived: Set<number>): Promise<Server | string> {
  const server = createServer((socket) => {
    arrived.add(socket.remotePort ?? 0);
    socket.on("error", () => {}).destroy();
  });
  return new Promise((resolve) => {
    server.once("error", (error) => resolve(`${hostPort(host, port)} cannot be listened on: ${messageOf(error)}`));
    server.listen({ host, port }, () => resolve(server));
  });
}

/** One connection: undefined where it arrived, else why not. */
async function attempt({ family, probePort, mode }: InterceptionProbe, arrived: Set<number>, clock: Clock): Promise<string | undefined> {
  const { own, called } = ADDRESSES[family];
  const target = hostPort(called, probePort);
  const outcome = await call({ host: called, port: probePort, localAddress: own }, clock);
  if (typeof outcome === "number") {
    for (let waited = 0; waited < ARRIVAL_MS && !arrived.has(outcome); waited += 25) await clock.sleep(25);
    return arrived.has(outcome) ? undefined : `a connection to ${target} went elsewhere`;
  }
  // Rules that keep addresses hand connections only to listeners that may have any, which takes privileges, and drop those for others. Without rules
  // nothing is lost on the way to the own machine.
  if (outcome === "held" && mode === "TPROXY" && (await call({ host: own, port: probePort, localAddress: own }, clock)) !== "held")
    return undefined;
  return outcome === "held" ? `a connection to ${target} was not answered` : `a connection to ${target} failed with ${outcome}`;
}

interface Call {
  readonly host: string;
  readonly port: number;
  readonly localAddress: string;
}

/** The source port of a connection that was accepted by anybody, `held` where nobody answered, else what went wrong. */
function call(options: Call, clock: Clock): Promise<number | string> {
  return new Promise((resolve) => {
    const socket: Socket = connect(options);
    const finish = (outcome: number | string): void => {
      cancel();
      resolve(outcome);
      socket.destroy();
    };
    const cancel = clock.after(ATTEMPT_MS, () => finish("held"));
    socket.once("connect", () => finish(socket.localPort ?? 0));
    socket.on("error", (error: NodeJS.ErrnoException) => finish(error.code ?? error.message));
  });
}
