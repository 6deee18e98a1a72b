import { fromBinary } from "@bufbuild/protobuf";
import { Interned } from "../../base/interned.ts";
import { ApiVersion } from "../../gen/envoy/config/core/v3/config_source_pb.js";
import { RouteConfigurationSchema } from "../../gen/envoy/config/route/v3/route_pb.js";
import { encode, encodedBytes } from "../../wire/encode.ts";
import type { Encoded, ResourceSet } from "../../wire/encoded.ts";
import { TailBuffer } from "../../wire/tail-buffer.ts";
import { VIRTUAL_HOST_TYPE } from "../../wire/type-urls.ts";

/** Domains of a virtual host and their encoding: made once, used by every table that has all of them. */
export interface EncodedDomains {
  /** As Envoy compares them: in lower case. */
  readonly names: readonly string[];
  readonly bytes: Uint8Array;
}

/** One virtual host of a table: its encoded body (without name and domains, but of this name alone) and the domains it has in this table. */
export interface TableHost {
  readonly name: string;
  readonly body: Uint8Array;
  readonly domains: EncodedDomains;
}

export interface RouteTableInput {
  readonly name: string;
  /** In groups: what is made of one is kept for all tables that have it. */
  readonly groups: readonly (readonly TableHost[])[];
  /** Domains are compared without the port of the Host header. Off where domains carry ports themselves (explicit HTTP proxies). */
  readonly ignorePort: boolean;
  /** Besides these hosts Envoy asks for others, which are resources of their own (`virtualHostResource`). */
  readonly divided: boolean;
}

const LENGTH_DELIMITED = 2;
const VIRTUAL_HOSTS_TAG = (2 << 3) | LENGTH_DELIMITED;
const NAME_TAG = (1 << 3) | LENGTH_DELIMITED;
const DOMAINS_TAG = (2 << 3) | LENGTH_DELIMITED;
const MAX_DIRECT_RESPONSE_BYTES = 1_048_576;

const out = new TailBuffer();

export function encodeDomains(written: readonly string[]): EncodedDomains {
  if (!written.some(hasUpperCase)) return { names: written, bytes: domainBytes(written) };
  const names = Map.groupBy(written, (name) => name.toLowerCase());
  return { names: [...names.keys()], bytes: domainBytes([...names.values()].map(([first = ""]) => first)) };
}

function domainBytes(names: readonly string[]): Uint8Array {
  out.clear();
  for (let i = names.length - 1; i >= 0; i--) {
    out.text(names[i] ?? "");
    out.byte(DOMAINS_TAG);
  }
  return out.toBytes();
}

const hasUpperCase = (name: string): boolean => name !== name.toLowerCase();

const listed = new Interned<EncodedDomains>();

/** The same, one object for equal lists: for domains that are put together anew for each table. */
export const sharedDomains = (names: readonly string[]): EncodedDomains => listed.of(names.join("\n"), () => encodeDomains(names));

/**
 * Puts a RouteConfiguration together from virtual hosts that are encoded already: a message is the concatenation of its fields, so a
 * change of one host costs that host's encoding. The pieces are shared by all tables that have the host under the same domains. A domain may
 * stand once in a table, discovered hosts included, or Envoy refuses all of it: see `withDistinctDomains`.
 */
export function assembleRouteTable(input: RouteTableInput): readonly Uint8Array[] {
  return [tableHead(input), ...input.groups.flatMap(fieldsOf)];
}

const groupFields = new WeakMap<readonly TableHost[], readonly Uint8Array[]>();

function fieldsOf(group: readonly TableHost[]): readonly Uint8Array[] {
  const known = groupFields.get(group) ?? group.map(hostField);
  groupFields.set(group, known);
  return known;
}

function tableHead({ name, ignorePort, divided }: RouteTableInput): Uint8Array {
  const configSource = { configSourceSpecifier: { case: "ads", value: {} }, resourceApiVersion: ApiVersion.V3 } as const;
  return encode(RouteConfigurationSchema, {
    name,
    validateClusters: false,
    ignorePortInHostMatching: ignorePort,
    maxDirectResponseBodySizeBytes: MAX_DIRECT_RESPONSE_BYTES,
    ...(divided && { vhds: { configSource } }),
  });
}

const divided = new WeakMap<Encoded, boolean>();

/** Whether a table leaves its hosts to discovery. */
export function isDivided(table: Encoded): boolean {
  const known = divided.get(table) ?? fromBinary(RouteConfigurationSchema, table.pieces?.[0] ?? table.body).vhds !== undefined;
  divided.set(table, known);
  return known;
}

const hostResources = new WeakMap<EncodedDomains, WeakMap<Uint8Array, Map<string, Encoded>>>();

/** A host as a resource: one for all tables of that name that have it under the same domains. */
function virtualHostResource(table: string, { name, body, domains }: TableHost): Encoded {
  const ofDomains = hostResources.get(domains) ?? new WeakMap<Uint8Array, Map<string, Encoded>>();
  hostResources.set(domains, ofDomains);
  const ofBody = ofDomains.get(body) ?? new Map<string, Encoded>();
  ofDomains.set(body, ofBody);
  let resource = ofBody.get(table);
  if (resource === undefined) {
    const fullName = `${table}/${name}`;
    const bytes = Buffer.concat([nameField(fullName), body, domains.bytes]);
    resource = encodedBytes(VIRTUAL_HOST_TYPE, fullName, bytes);
    ofBody.set(table, resource);
  }
  return resource;
}

const groupResources = new WeakMap<readonly TableHost[], Map<string, ResourceSet["resources"]>>();

/** Hosts as resources by their names: one map for all tables of that name that have the same group. */
export function virtualHostResources(table: string, group: readonly TableHost[]): ResourceSet["resources"] {
  const ofGroup = groupResources.get(group) ?? new Map<string, ResourceSet["resources"]>();
  groupResources.set(group, ofGroup);
  let resources = ofGroup.get(table);
  if (resources === undefined) {
    resources = new Map(group.map((host) => virtualHostResource(table, host)).map((resource) => [resource.name, resource]));
    ofGroup.set(table, resources);
  }
  return resources;
}

/** A host that nobody calls, for tables that have no other: Envoy opens a listener only when the first host of its table has come. */
export const noVirtualHost = (table: string): Encoded => virtualHostResource(table, NOBODY);

const NOBODY: TableHost = { name: "none", body: new Uint8Array(), domains: encodeDomains(["none.invalid"]) };

/** Table and host that the name of a discovered host is made of: Envoy finds the table by what stands before the last slash. */
export function splitVirtualHostName(name: string): { readonly table: string; readonly host: string } {
  const slash = name.lastIndexOf("/");
  return { table: name.slice(0, Math.max(0, slash)), host: name.slice(slash + 1) };
}

const hostFields = new WeakMap<EncodedDomains, WeakMap<Uint8Array, Uint8Array>>();

/** The whole field `virtual_hosts` of one host, made once for each pair of body and domains. */
function hostField({ name, body, domains }: TableHost): Uint8Array {
  const ofDomains = hostFields.get(domains) ?? new WeakMap<Uint8Array, Uint8Array>();
  hostFields.set(domains, ofDomains);
  let field = ofDomains.get(body);
  if (field === undefined) {
    out.clear();
    out.raw(domains.bytes);
    out.raw(body);
    out.text(name);
    out.byte(NAME_TAG);
    out.open(VIRTUAL_HOSTS_TAG, 0);
    field = out.toBytes();
    ofDomains.set(body, field);
  }
  return field;
}

/** Hosts of which each has the domains that none before it has; one that has none left is dropped. */
export function withDistinctDomains<H extends Pick<TableHost, "domains">>(hosts: readonly H[]): readonly H[] {
  const taken = new Set<string>();
  return hosts.flatMap((host) => {
    const { names } = host.domains;
    const free = names.some((name) => taken.has(name)) ? names.filter((name) => !taken.has(name)) : names;
    for (const name of free) taken.add(name);
    if (free === names) return [host];
    return free.length === 0 ? [] : [{ ...host, domains: sharedDomains(free) }];
  });
}

function nameField(name: string): Uint8Array {
  out.clear();
  out.text(name);
  out.byte(NAME_TAG);
  return out.toBytes();
}
