// Measures the agent: `node bench/agent.ts [--quick | --write]`. Prints JSON lines like bench/run.ts; `--write` puts them into BENCHMARKS.md, too.
import { spawn } from "node:child_process";
import { generateKeyPairSync, sign } from "node:crypto";
import { once } from "node:events";
import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { get } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findEnvoy } from "../src/agent/find-envoy.ts";
import { systemClock } from "../src/base/clock.ts";
import { freePort } from "../test/support/ports.ts";
import { type Emit, jsonLine, type Measurement, median } from "./measurement.ts";
import { cpuMs, memoryMb } from "./process-usage.ts";
import { describeMachine, withAgent } from "./report.ts";
import { writeScene } from "./scene.ts";
import { startServer } from "./server.ts";
import { type Extent, FULL, QUICK } from "./shapes.ts";

const ROOT = join(import.meta.dirname, "..");
const REPORT = join(ROOT, "BENCHMARKS.md");
const READY_LIMIT_MS = 2_000;
const MEMORY_LIMIT_MB = 80;
const NAMESPACE = "ns-0";
/** Memory is looked at when what the start left behind has been collected. */
const SETTLE_MS = 5_000;

/** From the start of an agent to an Envoy that is ready, with a certificate and the configuration of the scene; and what the agent takes then. */
export async function measureAgent({ shape, starts }: Extent, emit: Emit): Promise<void> {
  const home = await mkdtemp(join(tmpdir(), "bench-"));
  const securePort = await freePort();
  const issuer = createIssuer();
  await writeScene(home, { ...shape, classes: 1 });
  await writeFile(join(home, "etc/istio/mesh.yaml"), issuer.mesh);
  const server = await startServer(home, { SECURE_GRPC_ADDR: `127.0.0.1:${securePort}` });
  try {
    await once(spawn(join(ROOT, "bin/istio-agent"), ["--version"], { stdio: "ignore" }), "exit");
    const runs: AgentRun[] = [];
    for (let turn = 0; turn < starts; turn++) runs.push(await runAgent({ istiod: home, securePort, token: issuer.token }));
    const readies = runs.map(({ readyMs }) => readyMs);
    const last = runs.at(-1);
    emit({
      bench: "agent-start",
      value: median(readies),
      unit: "ms",
      limit: READY_LIMIT_MS,
      details: { starts, min: Math.min(...readies), max: Math.max(...readies), services: shape.services, cpu_ms: last?.cpuMs ?? 0 },
    });
    emit({
      bench: "agent-memory",
      value: median(runs.map(({ rssMb }) => rssMb)),
      unit: "MB",
      limit: MEMORY_LIMIT_MB,
      details: { peak_mb: median(runs.map(({ peakMb }) => peakMb)), kept_mb: last?.keptMb ?? 0, services: shape.services },
    });
  } finally {
    await server.stop("SIGTERM");
    await rm(home, { recursive: true, force: true });
  }
}

interface AgentRun {
  readonly readyMs: number;
  readonly cpuMs: number;
  readonly rssMb: number;
  readonly peakMb: number;
  /** Configuration kept on disk. */
  readonly keptMb: number;
}

async function runAgent(at: { readonly istiod: string; readonly securePort: number; readonly token: () => string }): Promise<AgentRun> {
  const home = await mkdtemp(join(tmpdir(), "bench-"));
  const [admin, status] = [await freePort(), await freePort()];
  await mkdir(join(home, "etc/certs"), { recursive: true });
  await mkdir(join(home, "var/run/secrets/tokens"), { recursive: true });
  await copyFile(join(at.istiod, "etc/cacerts/root-cert.pem"), join(home, "etc/certs/root-cert.pem"));
  await writeFile(join(home, "var/run/secrets/tokens/istio-token"), at.token());
  const env = {
    ...process.env,
    ISTIO_HOME: home,
    ISTIO_ADDRESS: `127.0.0.1:${at.securePort}`,
    POD_NAME: "bench",
    POD_NAMESPACE: NAMESPACE,
    INSTANCE_IP: "127.0.0.1",
    PROXY_CONFIG: JSON.stringify({ proxyAdminPort: admin, statusPort: status, terminationDrainDuration: "0s" }),
    ENVOY_STATUS_PORT: "0",
    ENVOY_PROMETHEUS_PORT: "0",
    ENVOY_PATH: findEnvoy(process.env),
    // Without interception a thousand services are a thousand ports; the scene's have addresses of their own, which this machine has not.
    ISTIO_META_INTERCEPTION_MODE: "REDIRECT",
  };
  const start = systemClock.monotonic();
  const child = spawn(join(ROOT, "bin/istio-agent"), [], { env, cwd: home, stdio: ["ignore", "ignore", "inherit"] });
  try {
    while (!(await answers(status))) {
      if (child.exitCode !== null || systemClock.monotonic() - start > 60_000) throw new Error("the agent did not become ready");
      await systemClock.sleep(5);
    }
    const readyMs = systemClock.monotonic() - start;
    await systemClock.sleep(SETTLE_MS);
    const pid = child.pid ?? 0;
    const { rss, peak } = memoryMb(pid);
    return { readyMs, cpuMs: cpuMs(pid), rssMb: rss, peakMb: peak, keptMb: await keptMb(home) };
  } finally {
    child.kill("SIGTERM");
    if (child.exitCode === null) await once(child, "exit");
    await rm(home, { recursive: true, force: true });
  }
}

async function keptMb(home: string): Promise<number> {
  const { readdir } = await import("node:fs/promises");
  const directory = join(home, "var/lib/istio/envoy/last-good");
  const names = await readdir(directory).catch(() => []);
  const sizes = await Promise.all(names.map(async (name) => (await readFile(join(directory, name))).length));
  return sizes.reduce((sum, size) => sum + size, 0) / 2 ** 20;
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const request = get({ host: "127.0.0.1", port, path: "/healthz/ready", agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    request.on("error", () => resolve(false));
  });
}

/** Somebody whose tokens the mesh believes. */
function createIssuer(): { readonly mesh: string; readonly token: () => string } {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const jwks = JSON.stringify({ keys: [{ ...publicKey.export({ format: "jwk" }), kid: "bench", alg: "ES256" }] });
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");
  return {
    mesh: `tokenIssuers:\n- {issuer: bench, jwks: '${jwks}', audiences: [istio-ca], identity: {namespace: ns, serviceAccount: sa}}\n`,
    token() {
      const claims = {
        iss: "bench",
        sub: "bench",
        aud: "istio-ca",
        ns: NAMESPACE,
        sa: "default",
        exp: Math.floor(systemClock.now() / 1_000) + 3_600,
      };
      const signed = `${part({ alg: "ES256", kid: "bench" })}.${part(claims)}`;
      return `${signed}.${sign("sha256", Buffer.from(signed), { key: privateKey, dsaEncoding: "ieee-p1363" }).toString("base64url")}`;
    },
  };
}

/** Measures, prints, and writes where that is asked for; the exit status. */
async function main(args: readonly string[]): Promise<number> {
  const [quick, write] = [args.includes("--quick"), args.includes("--write")];
  if (quick && write) {
    process.stderr.write("--write wants the whole measurement: no --quick\n");
    return 2;
  }
  const machine = describeMachine();
  const results: Measurement[] = [];
  await measureAgent(quick ? QUICK : FULL, (measurement) => {
    results.push(measurement);
    process.stdout.write(`${jsonLine(measurement)}\n`);
  });
  if (write) await writeFile(REPORT, withAgent(await readFile(REPORT, "utf8"), machine, results));
  return 0;
}

if (import.meta.main) process.exitCode = await main(process.argv.slice(2));
