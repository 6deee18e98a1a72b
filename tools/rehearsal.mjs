// Restarts istiod in a small mesh while its snapshot is being made, to learn what a restart runs.
import { spawn } from "node:child_process";
import { generateKeyPairSync, sign } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { get } from "node:http";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { VISITOR, visit } from "./rehearsal-proxy.mjs";

const MESH = join(dirname(fileURLToPath(import.meta.url)), "rehearsal-mesh.yaml");
const LIMIT_MS = 20_000;
const POLL_MS = 20;
/** A proxy that comes back with what it is to hold gets no answer: by then it has been settled. */
const SETTLED_MS = 300;
const TOKEN_S = 600;

/**
 * Starts istiod from a snapshot, lets it keep what it keeps for its next start, and starts it again with a proxy that comes back, in plaintext and over TLS. Gives
 * what the second start compiled: positions of functions by script, and the modules of Node that it loaded.
 */
export async function rehearse({ root, node, flags, blob, entry, work }) {
  const home = join(work, "rehearsal");
  rmSync(home, { recursive: true, force: true });
  mkdirSync(join(home, "etc/istio/conf"), { recursive: true });
  copyFileSync(MESH, join(home, "etc/istio/conf/mesh.yaml"));
  const token = introduced(home);
  const log = join(home, "v8.log");
  // The same for both: what was kept counts for the same settings only.
  const ports = await freePorts(5);
  const start = (more) => startIstiod({ command: [node, ...flags, ...more, "--snapshot-blob", blob, entry], home, ports });
  const kept = () => ["documents", "receipts"].every((name) => existsSync(join(home, "var/lib/istio", name)));
  const [port, securePort] = ports;
  try {
    const first = await start([]);
    const held = await visit({ root, port, leaves: until(kept) }).finally(first.stop);
    const credentials = { roots: readFileSync(join(home, "etc/cacerts/root-cert.pem")), token };
    const second = await start(["--log-function-events", "--no-logfile-per-isolate", `--logfile=${log}`]);
    await visit({ root, port, leaves: sleep(SETTLED_MS), held })
      .then(() => visit({ root, port: securePort, credentials, leaves: sleep(SETTLED_MS), held }))
      .finally(second.stop);
    return readLog(readFileSync(log, "latin1"));
  } finally {
    rmSync(home, { recursive: true, force: true }); // It has a key of a CA.
  }
}

/** Makes istiod believe an issuer of tokens, and gives the token of the proxy that comes. */
function introduced(home) {
  const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const jwks = JSON.stringify({ keys: [{ ...publicKey.export({ format: "jwk" }), kid: "rehearsal", alg: "RS256" }] });
  const iss = "https://rehearsal.example.com";
  writeFileSync(join(home, "etc/istio/mesh.yaml"), `tokenIssuers: [{issuer: "${iss}", jwks: '${jwks}'}]\n`);
  const sub = `system:serviceaccount:${VISITOR.namespace}:${VISITOR.account}`;
  const claims = { iss, aud: ["istio-ca"], sub, exp: Math.floor(Date.now() / 1_000) + TOKEN_S };
  const signed = [{ alg: "RS256", kid: "rehearsal" }, claims]
    .map((part) => Buffer.from(JSON.stringify(part)).toString("base64url"))
    .join(".");
  return `${signed}.${sign("sha256", Buffer.from(signed), privateKey).toString("base64url")}`;
}

/** What V8's log of functions says was compiled from source: `function,interpreter,<script>,<start>,…`, `script-details,<script>,<name>,…`. */
export function readLog(text) {
  const names = new Map();
  const made = new Set();
  const starts = new Map();
  for (const line of text.split("\n")) {
    const [event, what, third, fourth] = line.split(",", 4);
    if (event === "script-details") names.set(what, third);
    else if (event === "script" && what === "create") made.add(third);
    else if (event === "function" && what === "interpreter") starts.set(third, (starts.get(third) ?? new Set()).add(Number(fourth)));
  }
  const functions = {};
  for (const [script, found] of starts) if (names.has(script)) functions[names.get(script)] = [...found].sort((a, b) => a - b);
  const modules = [...made].map((script) => names.get(script) ?? "").filter((name) => name.startsWith("node:"));
  return { functions, modules: modules.map((name) => name.slice("node:".length)) };
}

/** Only with settings of its own: not those of who builds. */
async function startIstiod({ command: [node, ...args], home, ports }) {
  const [GRPC_ADDR, SECURE_GRPC_ADDR, HTTP_ADDR, MONITORING_ADDR, HTTPS_ADDR] = ports.map((port) => `127.0.0.1:${port}`);
  const env = { ISTIO_HOME: home, KUBECONFIG: join(home, "none"), GRPC_ADDR, SECURE_GRPC_ADDR, HTTP_ADDR, MONITORING_ADDR, HTTPS_ADDR };
  const child = spawn(node, args, { cwd: home, env, stdio: "ignore" });
  const ended = new Promise((resolve, reject) => child.once("exit", resolve).once("error", reject));
  const stop = async () => {
    child.kill("SIGTERM");
    const timer = setTimeout(() => child.kill("SIGKILL"), LIMIT_MS);
    await ended.finally(() => clearTimeout(timer));
  };
  try {
    await until(() => {
      if (child.exitCode !== null || child.signalCode !== null) throw new Error("istiod ended before it was ready");
      return answers(`http://${HTTP_ADDR}/ready`);
    });
  } catch (error) {
    await stop();
    throw error;
  }
  return { stop };
}

async function until(holds) {
  for (const end = Date.now() + LIMIT_MS; !(await holds()); await sleep(POLL_MS))
    if (Date.now() > end) throw new Error("istiod took too long");
}

const answers = (url) =>
  new Promise((resolve) => {
    const request = get(url, { agent: false }, (response) => resolve(response.resume().statusCode === 200));
    request.on("error", () => resolve(false));
  });

async function freePorts(count) {
  const servers = await Promise.all(
    Array.from(
      { length: count },
      () =>
        new Promise(
          (resolve, reject) =>
            void createServer()
              .once("error", reject)
              .listen(0, "127.0.0.1", function () {
                resolve(this);
              }),
        ),
    ),
  );
  const ports = servers.map((server) => server.address().port);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}
