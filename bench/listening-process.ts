import { readdirSync, readFileSync, readlinkSync } from "node:fs";

const LISTEN = "0A";

/** The process that listens on a TCP port of this machine, if one of those we may look into does. */
export function listeningProcess(port: number): number | undefined {
  const sockets = new Set(["/proc/net/tcp", "/proc/net/tcp6"].flatMap((table) => listeningSockets(table, port)));
  if (sockets.size === 0) return undefined;
  return processes().find((pid) => openFiles(pid).some((file) => sockets.has(file)));
}

function listeningSockets(table: string, port: number): readonly string[] {
  return readFileSync(table, "utf8")
    .split("\n")
    .slice(1)
    .map((line) => line.trim().split(/\s+/))
    .filter(([, local, , state]) => state === LISTEN && Number.parseInt(local?.split(":")[1] ?? "", 16) === port)
    .map((fields) => `socket:[${fields[9]}]`);
}

const processes = (): readonly number[] => readdirSync("/proc").map(Number).filter(Number.isInteger);

function openFiles(pid: number): readonly string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`).map((fd) => linkOf(`/proc/${pid}/fd/${fd}`));
  } catch {
    return []; // It has ended meanwhile, or is not ours to look into.
  }
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return "";
  }
}
