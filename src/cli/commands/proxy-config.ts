import type { ConfigDump } from "../../debug/api-types.ts";
import { type Arguments, usageError } from "../arguments.ts";
import type { Command, Outcome } from "../command.ts";
import { ISTIOD_FLAGS, type IstiodClient, istiodClient } from "../istiod-client.ts";
import { clusterSection } from "../proxy-config/clusters.ts";
import { type ProxyResources, proxyResources } from "../proxy-config/dumped-resources.ts";
import { endpointSection } from "../proxy-config/endpoints.ts";
import { listenerSection } from "../proxy-config/listeners.ts";
import { routeSection } from "../proxy-config/routes.ts";
import { secretSection } from "../proxy-config/secrets.ts";
import { type ProxyConfigFilter, type Section, sectionTable } from "../proxy-config/section.ts";
import { NAMESPACE_FLAG, proxyName } from "../proxy-name.ts";

type SectionName = "cluster" | "listener" | "route" | "endpoint" | "secret";

const SECTIONS: Readonly<Record<SectionName, (resources: ProxyResources, filter: ProxyConfigFilter) => Section>> = {
  cluster: ({ clusters }, filter) => clusterSection(clusters, filter),
  listener: ({ listeners }, filter) => listenerSection(listeners, filter),
  route: ({ routes }, filter) => routeSection(routes, filter),
  endpoint: ({ endpoints, clusters }, filter) => endpointSection(endpoints, clusters, filter),
  secret: ({ secrets }, filter) => secretSection(secrets, filter),
};

const ALL: readonly SectionName[] = ["cluster", "listener", "route", "endpoint", "secret"];

/** What people type for each part. */
const PARTS: Readonly<Record<string, readonly SectionName[]>> = {
  ...Object.fromEntries(["cluster", "clusters", "c"].map((word) => [word, ["cluster"]])),
  ...Object.fromEntries(["listener", "listeners", "l"].map((word) => [word, ["listener"]])),
  ...Object.fromEntries(["route", "routes", "r"].map((word) => [word, ["route"]])),
  ...Object.fromEntries(["endpoint", "endpoints", "ep"].map((word) => [word, ["endpoint"]])),
  ...Object.fromEntries(["secret", "secrets", "s"].map((word) => [word, ["secret"]])),
  ...Object.fromEntries(["all", "a"].map((word) => [word, ALL])),
};

export const proxyConfigCommand: Command = {
  name: "proxy-config",
  aliases: ["pc"],
  about: "Show the clusters, listeners, routes, endpoints or secrets of a connected proxy, and with --why where they come from",
  operands: "cluster|listener|route|endpoint|secret|all NAME[.NAMESPACE]",
  flags: [
    { name: "why", about: "show the objects each resource was made from, as file:line" },
    { name: "fqdn", value: "HOST", about: "clusters of this service" },
    { name: "port", value: "PORT", about: "clusters, listeners or endpoints with this port" },
    { name: "direction", value: "inbound|outbound", about: "clusters of this direction" },
    { name: "subset", value: "NAME", about: "clusters of this subset" },
    { name: "name", value: "NAME", about: "the route table, listener or secret of this name" },
    { name: "address", value: "ADDRESS", about: "listeners or endpoints with this address" },
    { name: "type", value: "HTTP|TCP", about: "listeners with a filter chain of this type" },
    { name: "cluster", value: "NAME", about: "endpoints of this cluster" },
    { name: "status", value: "STATUS", about: "endpoints in this state: healthy, unhealthy, draining …" },
    NAMESPACE_FLAG,
    ...ISTIOD_FLAGS,
  ],
  outputs: ["short", "json", "yaml"],
  notes: [
    "Shown is what the proxy has acknowledged; what it refused or has not acknowledged yet says so.",
    "Secrets are those that come from the control plane; certificates of the mesh are known to the proxy's agent alone, and keys are never shown.",
    "Its bootstrap is not known to the control plane: ask the proxy itself, or `istioctl bootstrap`.",
  ],
  async run(args, host) {
    const [part = "", word, ...more] = args.operands;
    const sections = PARTS[part];
    if (sections === undefined)
      throw usageError(
        `say what to show: cluster, listener, route, endpoint, secret or all${part === "" ? "" : `, not ${JSON.stringify(part)}`}`,
      );
    if (word === undefined || more.length > 0) throw usageError("name one proxy, as NAME.NAMESPACE");
    const wanted = { proxy: proxyName(word, args), sections, why: args.has("why"), filter: filterOf(args) };
    return proxyConfig(await istiodClient(args, host), wanted);
  },
};

export interface ProxyConfigQuery {
  readonly proxy: string;
  readonly sections: readonly SectionName[];
  readonly why: boolean;
  readonly filter: ProxyConfigFilter;
}

/** Asks for the dump of a proxy and picks out of it. The data are Envoy's resources as they are; with `why` each with its version and origins. */
export async function proxyConfig(istiod: Pick<IstiodClient, "get">, query: ProxyConfigQuery): Promise<Outcome> {
  const dump = await istiod.get<ConfigDump>(`/debug/config_dump?proxyID=${encodeURIComponent(query.proxy)}${query.why ? "&why" : ""}`);
  const resources = proxyResources(dump);
  const sections = query.sections.map((name) => SECTIONS[name](resources, query.filter));
  const data = sections.map((section) => [section.title, dataOf(section, query.why)] as const);
  return {
    data: query.sections.length === 1 ? data[0]?.[1] : Object.fromEntries(data),
    text: sections.map((section) => sectionTable(section, query.why)).join("\n\n"),
  };
}

function dataOf({ entries }: Section, why: boolean): readonly unknown[] {
  if (!why) return entries.map(({ resource }) => resource.resource);
  return entries.map(({ resource: { name, version, status, error, why: origins, resource, hosts } }) => ({
    name,
    version,
    status,
    error,
    why: origins,
    resource,
    ...(hosts !== undefined && { hosts }),
  }));
}

function filterOf(args: Arguments): ProxyConfigFilter {
  return {
    fqdn: args.text("fqdn"),
    port: args.has("port") ? args.port("port", 0) : undefined,
    direction: args.choice("direction", ["inbound", "outbound"]),
    subset: args.text("subset"),
    name: args.text("name"),
    address: args.text("address"),
    type: args.choice("type", ["HTTP", "TCP"]),
    cluster: args.text("cluster"),
    status: args.text("status"),
  };
}
