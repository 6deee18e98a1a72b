import { readFileSync, statSync } from "node:fs";
import { dirname } from "node:path";
import type { SecurityContext } from "./pod.ts";

export interface Mount {
  /** A file or directory of this machine. */
  readonly from: string;
  readonly to: string;
  readonly readOnly: boolean;
}

/** All that decides how a container starts. */
export interface ContainerPlan {
  /** An empty directory of this machine, over which its layer is mounted. */
  readonly layer: string;
  readonly hostname: string;
  /** Texts of files that are the pod's own: `/etc/resolv.conf` and the like. */
  readonly texts: Readonly<Record<string, string>>;
  readonly mounts: readonly Mount[];
  readonly readOnlyRoot: boolean;
  readonly workingDir: string;
  readonly program: ProgramPlan;
}

/** What runs in a container, at its start or later. */
export interface ProgramPlan {
  readonly words: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly user: number;
  readonly group: number;
  readonly groups: readonly number[];
  readonly security: SecurityContext;
}

/** Mount points of this machine that a layer over its root does not show, and containers may need: programs may lie there. */
const HIDDEN = /^\/(proc|sys|dev|run|etc|tmp)(\/|$)/;

/**
 * A shell script that turns a fresh mount, PID and host-name namespace into a container: this machine's files with a layer of its own over them,
 * volumes where they are to be, then the program in place of the shell. It is process 1 there, as in any container.
 */
export function containerScript(plan: ContainerPlan): string {
  const { layer, texts, mounts } = plan;
  const own = [`${layer}/upper`, `${layer}/work`, `${layer}/root`];
  return [
    "set -e",
    "mount --make-rprivate /",
    `mount -t tmpfs tmpfs ${quote(layer)}`,
    `mkdir ${own.map(quote).join(" ")}`,
    `mount -t overlay overlay -o ${quote(`lowerdir=/,upperdir=${own[0]},workdir=${own[1]}`)} ${quote(own[2] ?? "")}`,
    `cd ${quote(own[2] ?? "")}`,
    ...["mount --rbind /sys sys", "mount --rbind /dev dev", "mount -t proc proc proc"],
    ...furtherMounts().map((path) => `mkdir -p ${quote(`.${path}`)} && mount --bind ${quote(path)} ${quote(`.${path}`)}`),
    ...["mkdir .machine", "pivot_root . .machine", "cd /"],
    ...Object.entries(texts).flatMap(([path, text]) => [`rm -f ${path}`, `printf %s ${quote(text)} > ${path}`]),
    ...mounts.flatMap(mountCommands),
    ...["umount -l /.machine", "rmdir /.machine"],
    ...[`hostname ${quote(plan.hostname)}`, "echo 0 > /proc/sys/net/ipv4/ip_unprivileged_port_start"],
    ...(plan.readOnlyRoot ? ["mount -o remount,ro,bind /"] : []),
    `cd ${quote(plan.workingDir)}`,
    // Whoever started it waits to hear that all is in place.
    "echo ready >&3",
    `exec 3>&- ${programWords(plan.program).map(quote).join(" ")}`,
  ].join("\n");
}

function mountCommands({ from, to, readOnly }: Mount): readonly string[] {
  const place = statSync(from).isDirectory() ? `mkdir -p ${quote(to)}` : `mkdir -p ${quote(dirname(to))} && touch ${quote(to)}`;
  return [place, `mount --bind ${quote(`/.machine${from}`)} ${quote(to)}`, ...(readOnly ? [`mount -o remount,ro,bind ${quote(to)}`] : [])];
}

function furtherMounts(): readonly string[] {
  const points = readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .map((line) => line.split(" ")[4] ?? "/");
  return [...new Set(points)].filter((path) => path !== "/" && path !== "" && !HIDDEN.test(path) && !path.includes("\\"));
}

/** What containers may do unless told otherwise, as container runtimes have it. */
const USUAL_CAPABILITIES = [
  ...["CHOWN", "DAC_OVERRIDE", "FSETID", "FOWNER", "MKNOD", "NET_RAW", "SETGID", "SETUID", "SETFCAP", "SETPCAP"],
  ...["NET_BIND_SERVICE", "SYS_CHROOT", "KILL", "AUDIT_WRITE"],
];

/** The words that run a program as a container's user, with its capabilities and nothing but its environment. */
export function programWords({ words, env, user, group, groups, security }: ProgramPlan): readonly string[] {
  const { add = [], drop = [] } = security.capabilities ?? {};
  const kept = drop.includes("ALL") ? [] : USUAL_CAPABILITIES.filter((name) => !drop.includes(name));
  const all = security.privileged === true || add.includes("ALL");
  const allowed = [...new Set([...kept, ...add])].map((name) => `,+${name.toLowerCase()}`).join("");
  return [
    ...["setpriv", "--reuid", String(user), "--regid", String(group)],
    ...(groups.length === 0 ? ["--clear-groups"] : ["--groups", groups.join()]),
    ...(all ? [] : ["--inh-caps", "-all", "--bounding-set", `-all${allowed}`]),
    ...(security.allowPrivilegeEscalation === false ? ["--no-new-privs"] : []),
    ...["env", "-i", ...Object.entries(env).map(([name, value]) => `${name}=${value}`), ...words],
  ];
}

const quote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;
