import { messageOf } from "../../base/errors.ts";
import type { SyncStatus, VersionInfo } from "../../debug/api-types.ts";
import type { Command } from "../command.ts";
import { ISTIOD_FLAGS, type IstiodClient, istiodClient } from "../istiod-client.ts";

/** Versions of this program, of the control plane and of the proxies connected to it. */
export interface Versions {
  readonly clientVersion: VersionInfo;
  readonly meshVersion?: VersionInfo;
  /** Proxies by the version they announce. */
  readonly dataPlaneVersion?: readonly { readonly version: string; readonly proxies: number }[];
  /** Why nothing is known of the control plane. */
  readonly meshError?: string;
}

export const versionCommand: Command = {
  name: "version",
  aliases: [],
  about: "Show the versions of istioctl, of the control plane and of its proxies",
  operands: "",
  flags: [
    { name: "short", short: "s", about: "only the version of istioctl" },
    { name: "remote", value: "true|false", about: "also ask the control plane (default true)" },
    ...ISTIOD_FLAGS,
  ],
  outputs: ["text", "json", "yaml"],
  async run(args, host) {
    const own: VersionInfo = { version: host.version, istio: host.istioVersion };
    const remote = !args.has("short") && args.choice("remote", ["true", "false"]) !== "false";
    const data = remote ? await versions(own, await istiodClient(args, host)) : { clientVersion: own };
    return { data, text: args.has("short") ? host.version : versionText(data) };
  },
};

/** Asks the control plane. One that cannot be reached is no failure: the own version is still an answer. */
export async function versions(own: VersionInfo, istiod: IstiodClient): Promise<Versions> {
  try {
    const meshVersion = await istiod.get<VersionInfo>("/version");
    const proxies = await istiod.get<readonly SyncStatus[]>("/debug/syncz").catch(() => undefined);
    return { clientVersion: own, meshVersion, ...(proxies !== undefined && { dataPlaneVersion: countVersions(proxies) }) };
  } catch (error) {
    return { clientVersion: own, meshError: messageOf(error) };
  }
}

function countVersions(proxies: readonly SyncStatus[]): NonNullable<Versions["dataPlaneVersion"]> {
  const counts = new Map<string, number>();
  for (const { istio_version: version } of proxies) counts.set(version || "unknown", (counts.get(version || "unknown") ?? 0) + 1);
  return [...counts].sort().map(([version, count]) => ({ version, proxies: count }));
}

function versionText({ clientVersion, meshVersion, dataPlaneVersion, meshError }: Versions): string {
  const lines = [`client version: ${describe(clientVersion)}`];
  if (meshVersion !== undefined) lines.push(`control plane version: ${describe(meshVersion)}`);
  if (meshError !== undefined) lines.push(`control plane version: unknown, ${meshError}`);
  if (dataPlaneVersion !== undefined) {
    const counted = dataPlaneVersion.map(({ version, proxies }) => `${version} (${proxies} ${proxies === 1 ? "proxy" : "proxies"})`);
    lines.push(`data plane version: ${counted.join(", ") || "none"}`);
  }
  return lines.join("\n");
}

const describe = ({ version, istio }: VersionInfo): string => (istio === undefined ? version : `${version} (Istio API ${istio})`);
