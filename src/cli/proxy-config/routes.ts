import type { Json } from "../../debug/api-types.ts";
import { at, listAt, textAt, textsAt } from "../json-path.ts";
import type { ProxyResource } from "./dumped-resources.ts";
import { objectOfMetadata, type ProxyConfigFilter, type Section, type SectionEntry } from "./section.ts";

/** `istioctl proxy-config route`: a row for each route of each virtual host. Of a table that is divided, each host says where it comes from. */
export function routeSection(tables: readonly ProxyResource[], filter: Pick<ProxyConfigFilter, "name">): Section {
  const kept = tables.filter(({ name }) => filter.name === undefined || name === filter.name);
  return {
    title: "routes",
    header: ["NAME", "VHOST NAME", "DOMAINS", "MATCH", "VIRTUAL SERVICE"],
    entries: kept.map(entryOf),
  };
}

/** Hosts that are resources of their own come after the others, each with how it stands. */
function entryOf(table: ProxyResource): SectionEntry {
  const { name, resource, hosts = [] } = table;
  const all = listAt(resource, "virtualHosts");
  const named = (wanted: string): readonly Json[] => all.filter((host) => textAt(host, "name") === wanted);
  const inline = all.filter((host) => !hosts.some((one) => one.name === textAt(host, "name")));
  const rows = inline.flatMap((host) => rowsOf(name, host));
  const parts = hosts.map((host) => ({ resource: host, rows: named(host.name).flatMap((one) => rowsOf(name, one)) }));
  return { resource: table, rows: rows.length > 0 ? rows : [[name, "", "", "no virtual hosts", ""]], parts };
}

function rowsOf(table: string, host: Json): readonly (readonly string[])[] {
  const domains = domainsText(textsAt(host, "domains"));
  const name = textAt(host, "name");
  const shown = name.startsWith(`${table}/`) ? name.slice(table.length + 1) : name;
  return listAt(host, "routes").map((route) => [table, shown, domains, matchText(at(route, "match")), virtualServiceOf(route, host)]);
}

/** As many as fit; a service has a dozen spellings. */
function domainsText(domains: readonly string[]): string {
  const [first = "", second, ...others] = domains;
  if (second === undefined) return first;
  return others.length === 0 ? `${first}, ${second}` : `${first}, ${second} + ${others.length} more...`;
}

/** What a route takes, in the notation of Istio's istioctl: `/login*` is a prefix, `~re` a regular expression. */
function matchText(match: Json | undefined): string {
  const path = textAt(match, "path");
  const separated = textAt(match, "pathSeparatedPrefix");
  const regex = textAt(match, "safeRegex", "regex");
  const prefix = textAt(match, "prefix");
  const base = path || (separated && `${separated}(/|$)*`) || (regex && `~${regex}`) || `${prefix}*`;
  const more = listAt(match, "headers").length + listAt(match, "queryParameters").length;
  return more === 0 ? base : `${base} and ${more} more`;
}

const virtualServiceOf = (route: Json, host: Json): string =>
  objectOfMetadata(textAt(route, "metadata", "filterMetadata", "istio", "config")) ||
  objectOfMetadata(textAt(host, "metadata", "filterMetadata", "istio", "config"));
