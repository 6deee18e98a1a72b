import { formatIp, parseIp } from "../../base/address.ts";
import { eachField } from "../../wire/field-reader.ts";

/** A host of the mesh, as the control plane's table of names has it. */
export interface NameInfo {
  readonly host: string;
  readonly ips: readonly string[];
  readonly registry: string;
  readonly shortname: string;
  readonly namespace: string;
  readonly altHosts: readonly string[];
}

/** Reads a serialized `istio.networking.nds.v1.NameTable`. Throws on malformed bytes. Read field by field: the agent has no room for message classes. */
export function readNameTable(bytes: Uint8Array): readonly NameInfo[] {
  const names: NameInfo[] = [];
  eachField(bytes, (field, reader) => {
    if (field !== 1) return false;
    names.push(readEntry(reader.bytes()));
    return true;
  });
  return names;
}

function readEntry(bytes: Uint8Array): NameInfo {
  let host = "";
  let info = new Uint8Array();
  eachField(bytes, (field, reader) => {
    if (field === 1) host = reader.string();
    else if (field === 2) info = reader.bytes() as Uint8Array<ArrayBuffer>;
    else return false;
    return true;
  });
  const entry = { host, ips: [] as string[], registry: "", shortname: "", namespace: "", altHosts: [] as string[] };
  eachField(info, (field, reader) => {
    if (field === 1) entry.ips.push(reader.string());
    else if (field === 2) entry.registry = reader.string();
    else if (field === 3) entry.shortname = reader.string();
    else if (field === 4) entry.namespace = reader.string();
    else if (field === 5) entry.altHosts.push(reader.string());
    else return false;
    return true;
  });
  return entry;
}

/** Where the workload is, which decides what short names mean to it. */
export interface NamePlace {
  readonly namespace: string;
  /** `svc.cluster.local`, without a namespace. */
  readonly domain: string;
  /** First search domain of the machine: programs append it to what they ask for. */
  readonly search: string;
}

/** Domain of services as a node id says it: `svc.cluster.local` of `…~…~…~shop.svc.cluster.local`. */
export function domainOf(nodeId: string, namespace: string): string {
  const domain = nodeId.split("~")[3] ?? "";
  return domain.startsWith(`${namespace}.`) ? domain.slice(namespace.length + 1) : domain;
}

/** Addresses of a host, by family, as bytes. */
export interface HostAddresses {
  readonly v4: readonly Uint8Array[];
  readonly v6: readonly Uint8Array[];
}

export interface Found extends HostAddresses {
  /** Another name that the one asked for stands for. */
  readonly alias: string | undefined;
}

/** Answers by name. */
export interface NameLookup {
  /** Undefined for a name that is not the mesh's. */
  find(name: string): Found | undefined;
  readonly size: number;
}

/**
 * Turns the table into look-ups by Istio's rules: Services of Kubernetes are known by their short forms too, those of the own namespace by the
 * shortest; hosts with an asterisk take every name below; a name with the search domain appended is an alias of the name, which saves programs that
 * try all search domains the way to other servers.
 */
export function buildLookup(names: readonly NameInfo[], place: NamePlace): NameLookup {
  const hosts = new Map<string, HostAddresses>();
  for (const info of names) {
    const addresses = addressesOf(info.ips);
    if (addresses.v4.length + addresses.v6.length === 0) continue;
    for (const name of namesOf(info, place)) hosts.set(name.toLowerCase(), addresses);
  }
  const suffix = place.search === "" ? undefined : `.${place.search}`;
  return {
    size: hosts.size,
    find(asked) {
      const name = asked.toLowerCase();
      const exact = hosts.get(name);
      if (exact !== undefined) return { ...exact, alias: undefined };
      const short = suffix !== undefined && name.endsWith(suffix) ? name.slice(0, -suffix.length) : undefined;
      const aliased = short === undefined ? undefined : (hosts.get(short) ?? wildcard(hosts, short));
      if (short !== undefined && aliased !== undefined) return { ...aliased, alias: short };
      const found = wildcard(hosts, name);
      return found === undefined ? undefined : { ...found, alias: undefined };
    },
  };
}

function namesOf(info: NameInfo, { namespace, domain }: NamePlace): readonly string[] {
  const host = info.host.replace(/\.$/, "");
  if (info.registry !== "Kubernetes" || domain === "" || !host.endsWith(`.${domain}`) || info.shortname === "") return [host];
  const short = `${info.shortname}.${info.namespace}`;
  return [
    host,
    short,
    `${short}.${domain.split(".")[0] ?? ""}`,
    ...(info.namespace === namespace ? [info.shortname] : []),
    ...info.altHosts,
  ];
}

/** The longest that fits. */
function wildcard(hosts: ReadonlyMap<string, HostAddresses>, name: string): HostAddresses | undefined {
  for (let dot = name.indexOf("."); dot >= 0; dot = name.indexOf(".", dot + 1)) {
    const found = hosts.get(`*${name.slice(dot)}`);
    if (found !== undefined) return found;
  }
  return undefined;
}

function addressesOf(ips: readonly string[]): HostAddresses {
  const v4: Uint8Array[] = [];
  const v6: Uint8Array[] = [];
  for (const text of ips) {
    const ip = parseIp(text);
    if (ip?.family === 4) v4.push(Uint8Array.from(formatIp(ip).split("."), Number));
    else if (ip !== undefined) v6.push(Buffer.from(ip.value.toString(16).padStart(32, "0"), "hex"));
  }
  return { v4, v6 };
}
