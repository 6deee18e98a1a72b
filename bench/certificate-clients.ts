import { fork } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { quantile } from "./measurement.ts";
import { cpuMs } from "./process-usage.ts";
import type { MeasuredServer } from "./server.ts";
import type { LoadClient } from "./xdsload.ts";

/** Who is asked for certificates, with what, by how many at once and for how long. */
export interface Asking {
  readonly home: string;
  readonly server: MeasuredServer;
  readonly token: string;
  readonly clients: number;
  readonly seconds: number;
}

/** What came of it. Times are in ms; `cpuMsEach` is the server's. */
export interface Signed {
  readonly count: number;
  readonly rate: number;
  readonly cpuMsEach: number;
  readonly p50: number;
  readonly p99: number;
  readonly slowest: number;
}

const rootsIn = (home: string): string => join(home, "etc/cacerts/root-cert.pem");

/** Asks with the load client (`xdsload csr`). */
export async function askWithLoadClient(client: LoadClient, { home, server, token, clients, seconds }: Asking): Promise<Signed> {
  const file = join(home, "csr-token");
  await writeFile(file, token);
  const [line] = await client.run("csr", [
    ...["--address", `127.0.0.1:${server.securePort}`, "--tls", "--ca", rootsIn(home), "--token", file],
    ...["-c", String(clients), "--duration", `${seconds}s`, "--pid", String(server.pid)],
  ]);
  const { n: count = 0, p50_ms: p50 = 0, p99_ms: p99 = 0, last_ms: slowest = 0 } = line?.latency ?? {};
  if (count === 0) throw new Error("no certificate was given out");
  return { count, rate: line?.csr_per_s ?? 0, cpuMsEach: line?.srv_cpu_ms_per_csr ?? 0, p50, p99, slowest };
}

/** Asks with a client of our own, where there is no other. */
export async function askWithOwnClient({ home, server, token, clients, seconds }: Asking): Promise<Signed> {
  const child = fork(join(import.meta.dirname, "signing-client.ts"), [
    ...["--port", String(server.securePort), "--roots", rootsIn(home), "--token", token],
    ...["--clients", String(clients), "--seconds", String(seconds)],
  ]);
  const next = (): Promise<unknown> =>
    Promise.race([once(child, "message").then(([message]) => message), once(child, "exit").then(() => "ended")]);
  if ((await next()) !== "ready") throw new Error("the client that asks for certificates ended before it began");
  const before = cpuMs(server.pid);
  child.send("go");
  const answer = await next();
  if (!Array.isArray(answer) || answer.length === 0) throw new Error("no certificate was given out");
  const [times, used] = [answer.map(Number), cpuMs(server.pid) - before];
  const count = times.length;
  const [p50, p99] = [quantile(times, 0.5), quantile(times, 0.99)];
  return { count, rate: count / seconds, cpuMsEach: used / count, p50, p99, slowest: Math.max(...times) };
}
