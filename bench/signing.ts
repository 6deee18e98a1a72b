import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Asking, askWithLoadClient, askWithOwnClient, type Signed } from "./certificate-clients.ts";
import type { Emit } from "./measurement.ts";
import { loadProxies, ownProxies } from "./pushed-proxies.ts";
import type { SceneShape } from "./scene.ts";
import { startServer } from "./server.ts";
import { createTokenIssuer } from "./token-issuer.ts";
import { foundLoadClient } from "./xdsload.ts";

const CLIENTS = 4;
const LEAST_RATE = 2_500;
const MOST_MS = 10;
/** When the change is made, of the time in which certificates are asked for. */
const CHANGE_AT = 0.3;

interface SigningOptions {
  readonly seconds: number;
  /** Ask with the load client that other control planes are measured with, if it is there; it takes less of the processor that it shares with the server than ours. */
  readonly loadClient: boolean;
  readonly emit: Emit;
}

/** Certificates given out over TLS for P-256 keys by token, to four clients at once: on their own, and while a change of routes goes to all proxies. */
export async function measureSigning(shape: SceneShape, { seconds, loadClient, emit }: SigningOptions): Promise<void> {
  const home = await mkdtemp(join(tmpdir(), "bench-"));
  const issuer = createTokenIssuer();
  const client = loadClient ? foundLoadClient() : undefined;
  const scene = { home, shape, issuer };
  const proxies = client === undefined ? ownProxies(scene) : loadProxies(client, scene);
  await proxies.write();
  await issuer.introduce(home);
  const server = await startServer(home);
  const asking: Asking = { home, server, token: issuer.tokenFor("ns-0", "default"), clients: CLIENTS, seconds };
  const ask = (): Promise<Signed> => (client === undefined ? askWithOwnClient(asking) : askWithLoadClient(client, asking));
  const by = { clients: CLIENTS, client: client === undefined ? "own" : "xdsload" };
  try {
    await ask(); // Until the code is compiled, others are measured than those that serve.
    const { count, rate, cpuMsEach, p50, p99 } = await ask();
    const details = { ...by, signed: count, cpu_ms_each: cpuMsEach };
    emit({ bench: "csr-rate", value: rate, unit: "CSR/s", least: LEAST_RATE, details: { ...details, p50 } });
    emit({ bench: "csr-p99", value: p99, unit: "ms", limit: MOST_MS, details });
    await proxies.connect(server);
    const [pushed, last] = await Promise.all([ask(), proxies.change(seconds * 1_000 * CHANGE_AT)]);
    emit({
      bench: "csr-p99-during-push",
      value: pushed.p99,
      unit: "ms",
      limit: MOST_MS,
      details: { ...by, streams: shape.proxies, rate: pushed.rate, slowest: pushed.slowest, route_change_last: last },
    });
  } finally {
    proxies.close();
    await server.stop();
    await rm(home, { recursive: true, force: true });
  }
}
