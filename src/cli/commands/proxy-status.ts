import { EdgeError } from "../../base/errors.ts";
import type { SyncStatus, TypeSync } from "../../debug/api-types.ts";
import { usageError } from "../arguments.ts";
import type { Command } from "../command.ts";
import { ISTIOD_FLAGS, type IstiodClient, istiodClient } from "../istiod-client.ts";
import { type TableGroup, table } from "../print/table.ts";
import { NAMESPACE_FLAG, proxyName } from "../proxy-name.ts";

/** The types in the order in which Istio's istioctl shows them. */
const TYPES = ["CDS", "LDS", "EDS", "RDS"] as const;

export const proxyStatusCommand: Command = {
  name: "proxy-status",
  aliases: ["ps"],
  about: "Show which proxies are connected and whether they have what they should",
  operands: "[NAME[.NAMESPACE]]",
  flags: [NAMESPACE_FLAG, ...ISTIOD_FLAGS],
  outputs: ["table", "json", "yaml"],
  notes: [
    "SYNCED: acknowledged. STALE: sent, not acknowledged yet. NOT SENT: not asked for, or nothing sent yet.",
    "NACKED: the proxy refuses something; name the proxy to see what.",
  ],
  async run(args, host) {
    const [word, ...more] = args.operands;
    if (more.length > 0) throw usageError("name one proxy, or none");
    const name = word === undefined ? undefined : proxyName(word, args);
    const namespace = args.text("namespace");
    const istiod = await istiodClient(args, host);
    const all = await proxyStatuses(istiod, name);
    const data = name !== undefined || namespace === undefined ? all : all.filter(({ proxy }) => proxy.endsWith(`.${namespace}`));
    return { data, text: name === undefined ? statusTable(data) : data.map(statusDetails).join("\n\n") };
  },
};

/** All connected proxies, or all connections of one. A proxy that is named and not connected is an error. */
export async function proxyStatuses(istiod: IstiodClient, name: string | undefined): Promise<readonly SyncStatus[]> {
  const all = await istiod.get<readonly SyncStatus[]>("/debug/syncz");
  if (name === undefined) return all;
  const chosen = all.filter(({ proxy }) => proxy === name || (!name.includes(".") && proxy.startsWith(`${name}.`)));
  if (chosen.length > 0) return chosen;
  throw new EdgeError("not_found", `no proxy named ${name} is connected to istiod at ${istiod.address}`, {
    hint: "`istioctl proxy-status` lists those that are",
  });
}

/** One line a proxy. */
export function statusTable(proxies: readonly SyncStatus[]): string {
  if (proxies.length === 0) return "no proxy is connected";
  const rows = proxies.map((proxy) => [
    proxy.proxy,
    proxy.cluster_id,
    ...TYPES.map((type) => stateOf(proxy, type)),
    proxy.istiod,
    proxy.istio_version,
  ]);
  return table(["NAME", "CLUSTER", ...TYPES, "ISTIOD", "VERSION"], [{ rows }]);
}

const stateOf = (proxy: SyncStatus, type: string): string => proxy.types.find((one) => one.type === type)?.state ?? "NOT SENT";

/** All there is to say of one proxy, with what it refused and why. */
export function statusDetails(proxy: SyncStatus): string {
  const head = `${proxy.proxy} (${proxy.proxy_type}) at ${proxy.address}, ${proxy.protocol}, connected since ${proxy.connected_at}`;
  const groups = proxy.types.map((type): TableGroup => ({ rows: [rowOf(type)], notes: notesOf(type) }));
  return `${head}\n${table(["TYPE", "STATE", "RESOURCES", "SENT", "ACKED", "NACKS"], groups)}`;
}

const rowOf = (type: TypeSync): readonly string[] => [
  type.type,
  type.state,
  String(type.resources),
  type.sent_at ?? "",
  type.acked_at ?? "",
  String(type.nacks),
];

const notesOf = (type: TypeSync): readonly string[] => [
  ...type.rejected.map(
    ({ name, error, kept }) => `refuses ${name} (${kept === undefined ? "has none" : "keeps the version before"}): ${error}`,
  ),
  ...type.failed.map(({ name, message }) => `${name} could not be made: ${message}`),
];
