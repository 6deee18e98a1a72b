import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";

/** Variables of an environment in which `iptables-restore` and its like are found, with or without a suffix. */
export type IptablesEnv = Readonly<Record<string, string>>;

const PACKAGES = [
  "iptables",
  "libxtables12",
  "libip4tc2",
  "libip6tc2",
  "libnftnl11",
  "libmnl0",
  "libnfnetlink0",
  "libnetfilter-conntrack3",
];

/**
 * Finds iptables on the PATH, else unpacks Debian's packages into the user's cache, where they disturb nobody. Gives a reason where neither is
 * possible, so that tests can say why they are skipped.
 */
export function findIptables(): IptablesEnv | string {
  try {
    execFileSync("sh", ["-c", "command -v iptables-restore"]);
    return {};
  } catch {
    return unpackedIptables();
  }
}

function unpackedIptables(): IptablesEnv | string {
  const root = join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "istio-ts", "iptables");
  if (!existsSync(root)) {
    if (!existsSync("/usr/bin/apt-get")) return "iptables is not installed, and this is no Debian to fetch it from";
    const reason = fetchPackages(root);
    if (reason !== undefined) return reason;
  }
  const libraries = readdirSync(join(root, "usr/lib")).find((name) => name.includes("-linux-")) ?? "";
  const path = join(root, "usr/lib", libraries);
  return {
    PATH: `${join(root, "usr/sbin")}:${process.env.PATH ?? ""}`,
    LD_LIBRARY_PATH: path,
    XTABLES_LIBDIR: join(path, "xtables"),
  };
}

function fetchPackages(root: string): string | undefined {
  mkdirSync(dirname(root), { recursive: true });
  const work = mkdtempSync(join(dirname(root), ".iptables-"));
  const run = (command: string, ...args: readonly string[]): void =>
    void execFileSync(command, args, { cwd: work, stdio: "pipe", timeout: 120_000 });
  try {
    try {
      run("apt-get", "download", ...PACKAGES);
    } catch {
      run("apt-get", "update");
      run("apt-get", "download", ...PACKAGES);
    }
    for (const name of readdirSync(work).filter((file) => file.endsWith(".deb"))) run("dpkg", "-x", name, "root");
    renameSync(join(work, "root"), root);
    return undefined;
  } catch (error) {
    return `iptables is not installed, and its packages cannot be fetched: ${error instanceof Error ? error.message.split("\n")[0] : String(error)}`;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}
