import { toBinary } from "@bufbuild/protobuf";
import { contentHash } from "../../base/hash.ts";
import { Interned } from "../../base/interned.ts";
import { DestinationRuleSchema } from "../../gen/istio/networking/v1alpha3/destination_rule_pb.js";
import type { CertificateFiles, LocalServer, ProxyView } from "../../model/proxy.ts";
import { type ServiceRef, serviceKey } from "../../model/service.ts";
import type { ResolvedDestinationRule } from "../context.ts";
import { NOWHERE, type Place } from "../endpoints/assignment-key.ts";

/** What is known of a client that shapes its outbound clusters, besides what it sees. */
export interface ClientTraits {
  /** Gateways never sniff, cannot keep an original destination, and may use credentials. */
  readonly router: boolean;
  /** It can get a certificate of the mesh. */
  readonly identity: LocalServer;
  /** A certificate in files that it shows in the place of the mesh's. */
  readonly files: CertificateFiles | undefined;
  /** An SDS server on its machine has some of the credentials. */
  readonly credentialSocket: boolean;
  /** Families of its addresses: which answers of a DNS server it can use. */
  readonly family: "v4" | "v6" | "all";
  /** It has addresses of both families, whether or not both are used. */
  readonly bothFamilies: boolean;
  /** Headers of HTTP/1 keep their spelling (ProxyConfig proxyHeaders.preserveHttp1HeaderCase). */
  readonly preserveHeaderCase: boolean;
  /** It is an east-west gateway: clusters by SNI are made as well. */
  readonly sni: boolean;
}

/** Everything the outbound clusters of one service depend on besides the service itself and the mesh. `id` spells it out. */
export interface OutboundKey {
  readonly id: string;
  readonly service: ServiceRef;
  /** Ports the client imports; undefined = all. */
  readonly ports: readonly number[] | undefined;
  readonly rule: ResolvedDestinationRule | undefined;
  readonly traits: ClientTraits;
  /** For clusters that carry their endpoints inside. */
  readonly place: Place;
}

/** Keys of all services a client sees. Equal ids mean equal keys. */
export interface OutboundKeys {
  readonly id: string;
  readonly keys: readonly OutboundKey[];
}

/** What is the same for all services of one client, spelled out once. */
export interface ClientPart {
  readonly id: string;
  readonly traits: ClientTraits;
}

export const clientPart = ({ files, ...rest }: ClientTraits): ClientPart => ({
  id: `${Object.values(rest).join()}${files === undefined ? "" : JSON.stringify(files)}`,
  traits: { files, ...rest },
});

const keys = new Interned<OutboundKey>();

/**
 * Clients in different namespaces that see the same rule share the clusters: the rule stands in the key, not who looked it up. They share the
 * key itself too, since each of them remembers one for every service.
 */
export function outboundKey(parts: Omit<OutboundKey, "id" | "traits">, client: ClientPart): OutboundKey {
  const { service, ports, rule, place } = parts;
  const where = place === NOWHERE ? "" : JSON.stringify(place);
  const id = `${serviceKey(service)}|${ports?.join() ?? ""}|${rule === undefined ? "" : ruleId(rule)}|${client.id}|${where}`;
  return keys.of(id, () => ({ id, ...parts, traits: client.traits }));
}

export const outboundKeys = (keys: readonly OutboundKey[]): OutboundKeys => ({
  id: contentHash(keys.map(({ id }) => id).join("\n")),
  keys,
});

const ruleIds = new WeakMap<ResolvedDestinationRule, string>();

function ruleId(rule: ResolvedDestinationRule): string {
  const known = ruleIds.get(rule) ?? `${rule.keys.join("+")}#${contentHash(toBinary(DestinationRuleSchema, rule.spec))}`;
  ruleIds.set(rule, known);
  return known;
}

export const hasBothFamilies = ({ addresses }: Pick<ProxyView, "addresses">): boolean =>
  addresses.some((address) => address.includes(":")) && addresses.some((address) => !address.includes(":"));

/** A proxy with addresses of both families counts as IPv4 unless dual stack is asked for. */
export function familyOf({ addresses }: Pick<ProxyView, "addresses">, dualStack: boolean): ClientTraits["family"] {
  const v6 = addresses.some((address) => address.includes(":"));
  const v4 = addresses.some((address) => !address.includes(":"));
  return v6 ? (v4 ? (dualStack ? "all" : "v4") : "v6") : "v4";
}
