import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../src/base/clock.ts";
import { Fleet, reachesAll } from "./fleet.ts";
import { type Emit, quantile } from "./measurement.ts";
import { cpuMs } from "./process-usage.ts";
import { replaceFile, routeEdit, type SceneShape, sceneProxies, writeScene } from "./scene.ts";
import { type MeasuredServer, startServer } from "./server.ts";
import { createTokenIssuer } from "./token-issuer.ts";

const CLIENTS = 4;
const LEAST_RATE = 2_500;
const MOST_MS = 10;
/** When the change is made, of the time in which certificates are asked for. */
const CHANGE_AT = 0.3;

interface Signing {
  readonly home: string;
  readonly server: MeasuredServer;
  readonly token: string;
  readonly seconds: number;
}

/** Certificates given out over TLS for P-256 keys by token, to four clients at once: on their own, and while a change of routes goes to all proxies. */
export async function measureSigning(
  shape: SceneShape,
  { seconds, emit }: { readonly seconds: number; readonly emit: Emit },
): Promise<void> {
  const home = await mkdtemp(join(tmpdir(), "bench-"));
  const issuer = createTokenIssuer();
  await writeScene(home, shape);
  await issuer.introduce(home);
  const server = await startServer(home);
  const fleet = new Fleet(server.securePort, { secure: await issuer.callsTo(home) });
  const signing = { home, server, token: issuer.tokenFor("ns-0", "app-0"), seconds };
  try {
    await sign(signing, () => Promise.resolve()); // Until the code is compiled, others are measured than those that serve.
    const alone = await sign(signing, () => Promise.resolve());
    const details = { clients: CLIENTS, signed: alone.times.length, cpu_ms_each: alone.cpuMs / alone.times.length };
    const rate = alone.times.length / seconds;
    emit({ bench: "csr-rate", value: rate, unit: "CSR/s", least: LEAST_RATE, details: { ...details, p50: quantile(alone.times, 0.5) } });
    emit({ bench: "csr-p99", value: quantile(alone.times, 0.99), unit: "ms", limit: MOST_MS, details });
    await fleet.connect(sceneProxies(shape));
    await fleet.quiet();
    let last = 0;
    const pushed = await sign(signing, async () => {
      const edit = routeEdit(1);
      const apply = await replaceFile(home, edit);
      await systemClock.sleep(seconds * 1_000 * CHANGE_AT);
      last = Math.max(...(await fleet.observe(apply, reachesAll(edit))).times);
    });
    emit({
      bench: "csr-p99-during-push",
      value: quantile(pushed.times, 0.99),
      unit: "ms",
      limit: MOST_MS,
      details: {
        clients: CLIENTS,
        streams: fleet.size,
        rate: pushed.times.length / seconds,
        slowest: Math.max(...pushed.times),
        route_change_last: last,
      },
    });
  } finally {
    fleet.close();
    await server.stop();
    await rm(home, { recursive: true, force: true });
  }
}

async function sign(
  { home, server, token, seconds }: Signing,
  meanwhile: () => Promise<void>,
): Promise<{ readonly times: readonly number[]; readonly cpuMs: number }> {
  const child = fork(join(import.meta.dirname, "signing-client.ts"), [
    ...["--port", String(server.securePort), "--roots", join(home, "etc/cacerts/root-cert.pem"), "--token", token],
    ...["--clients", String(CLIENTS), "--seconds", String(seconds)],
  ]);
  const next = (): Promise<unknown> =>
    Promise.race([once(child, "message").then(([message]) => message), once(child, "exit").then(() => "ended")]);
  if ((await next()) !== "ready") throw new Error("the client that asks for certificates ended before it began");
  const before = cpuMs(server.pid);
  child.send("go");
  const [times] = await Promise.all([next(), meanwhile()]);
  if (!Array.isArray(times) || times.length === 0) throw new Error("no certificate was given out");
  return { times: times.map(Number), cpuMs: cpuMs(server.pid) - before };
}
