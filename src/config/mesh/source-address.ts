import { isAbsolute, join, normalize } from "node:path";
import { parseHostPort } from "../../settings/host-port.ts";

/** Kinds of places configuration can come from. `mcp://` is read as `xds`. */
export type SourceScheme = "fs" | "k8s" | "xds" | "push" | "consul";

/** One entry of `configSources`, read. */
export interface SourceAddress {
  readonly scheme: SourceScheme;
  /** A directory for `fs`, host:port for what is called over the network, empty for `k8s`. */
  readonly target: string;
  /** As the user wrote it. */
  readonly address: string;
  /** Not written but assumed: used only where it is found. */
  readonly assumed: boolean;
}

const SCHEMES: Readonly<Record<string, SourceScheme>> = { fs: "fs", k8s: "k8s", xds: "xds", mcp: "xds", push: "push", consul: "consul" };

/** Reads `scheme://target`; a sentence says what is wrong otherwise. Relative directories are under the base directory. */
export function parseSourceAddress(address: string, baseDir: string): SourceAddress | string {
  const [, name = "", rest = ""] = /^([a-z0-9]+):\/\/(.*)$/s.exec(address) ?? [];
  const scheme = Object.hasOwn(SCHEMES, name) ? SCHEMES[name] : undefined;
  if (scheme === undefined) return `"${address}" does not begin with one of ${Object.keys(SCHEMES).join("://, ")}://`;
  const target = scheme === "fs" ? directoryOf(rest, baseDir) : rest;
  const fault = faultOfTarget(scheme, target);
  return fault === undefined ? { scheme, target, address, assumed: false } : `"${address}" ${fault}`;
}

/** Where configuration comes from if mesh.yaml does not say: the directory, then the cluster, each if it is there. */
export function assumedSources(baseDir: string): readonly SourceAddress[] {
  return [
    { scheme: "fs", target: directoryOf("./etc/istio/conf", baseDir), address: "fs://./etc/istio/conf", assumed: true },
    { scheme: "k8s", target: "", address: "k8s://", assumed: true },
  ];
}

const directoryOf = (path: string, baseDir: string): string =>
  path === "" ? "" : isAbsolute(path) ? normalize(path) : join(baseDir, path);

function faultOfTarget(scheme: SourceScheme, target: string): string | undefined {
  if (scheme === "k8s") return target === "" ? undefined : "must be k8s:// alone";
  if (scheme === "fs") return target === "" ? "names no directory" : undefined;
  const parsed = parseHostPort(target);
  if (typeof parsed === "string") return `does not name host:port: ${parsed}`;
  return parsed.host === "" || parsed.port === 0 ? "names no host or no port" : undefined;
}
