import type { Query } from "../../engine/index.ts";
import type { VirtualHostInput } from "../../envoy/route/route-input.ts";
import { type EncodedDomains, encodeDomains } from "../../envoy/route/route-table.ts";
import { isHttp } from "../../model/protocol.ts";
import { hostKey, refOf, type ServiceRef, servedAt, serviceKey } from "../../model/service.ts";
import type { Outlook } from "../clusters/outlook.ts";
import type { GenerateContext } from "../context.ts";
import { assignmentsOf } from "../endpoints/assignments.ts";
import { definePrepareFirst } from "../prepare-first.ts";
import { type Addressing, addressingId, domainsOf, type NamedService, type Nearness } from "./domains.ts";
import { hashedHost } from "./hosts.ts";
import { type RouteHeaders, routeHeadersId } from "./route-headers.ts";
import { hashPolicyOf } from "./translate/hash-policy.ts";

/** A service at a port, ready to be put into any client's table. */
export interface PlainHost extends ServiceRef {
  /** The virtual host for clients that have no DestinationRule of their own for it. */
  readonly body: Uint8Array;
  /** Keys of the DestinationRules `body` was made with. */
  readonly rules: string;
  readonly domains: Readonly<Record<Nearness, EncodedDomains>>;
  /** Other names it goes by (ExternalName Services); undefined for nearly all. */
  readonly aliases: readonly Pick<PlainHost, "host" | "domains">[] | undefined;
}

export interface PortQuery extends Addressing {
  readonly port: number;
  readonly headers: RouteHeaders;
}

/** The services of all ports, one list each. */
export interface PlainHosts {
  /** By service key. */
  readonly at: Query<PortQuery, ReadonlyMap<string, PlainHost>>;
  /** The work behind a list in small steps, before it is made for the first time. */
  readonly steps: (key: PortQuery) => Iterable<void>;
}

const portId = ({ port, headers, ...addressing }: PortQuery): string => `${port}|${addressingId(addressing)}${routeHeadersId(headers)}`;

/** No namespace has this name: it stands for clients without rules of their own. */
const OUTSIDER = "";

/**
 * Every HTTP service at a port, by service key. One list for all namespaces: a table reads it once instead of every service in it,
 * and takes the encoded parts as they are.
 */
export function definePlainHosts(ctx: GenerateContext, body: Query<VirtualHostInput, Uint8Array>): PlainHosts {
  const one = ctx.engine.query<ServiceRef & PortQuery, PlainHost | undefined>({
    name: "plainHost",
    id: (key) => `${serviceKey(key)}|${portId(key)}`,
    compute: (key) => hostAt(ctx, body, key),
  });
  const at = ctx.engine.query<PortQuery, ReadonlyMap<string, PlainHost>>({
    name: "plainHosts",
    id: portId,
    same: sameMembers,
    compute: (key) => {
      const hosts = servicesAt(ctx, key.port)
        .map((ref) => one({ ...ref, ...key }))
        .filter((host) => host !== undefined);
      return new Map(hosts.map((host) => [serviceKey(host), host]));
    },
  });
  const prepareFirst = definePrepareFirst();
  function* hostSteps(key: PortQuery): Iterable<void> {
    for (const ref of servicesAt(ctx, key.port)) {
      one.try({ ...ref, ...key });
      yield;
    }
  }
  return { at, steps: (key) => prepareFirst({ id: portId(key), steps: () => hostSteps(key), make: () => at(key) }) };
}

/** The DestinationRules that clients of an outlook use for each service they see, as texts to compare. */
export const defineRulesIn = (ctx: GenerateContext): Query<Outlook, ReadonlyMap<string, string>> =>
  ctx.engine.query<Outlook, ReadonlyMap<string, string>>({
    name: "rulesByService",
    id: ({ id }) => id,
    compute: ({ services }) => new Map(services.map((seen) => [serviceKey(seen.service), textOf(seen.rules)])),
  });

const textOf = (rules: readonly string[]): string => rules.join();

/** Services that have a port, whatever they speak there: one read a namespace leaves out all others. */
function servicesAt(ctx: GenerateContext, port: number): readonly ServiceRef[] {
  const { traitsIn } = assignmentsOf(ctx);
  return ctx.registry.namespaces().flatMap((namespace) => {
    const traits = traitsIn(namespace);
    return ctx.registry.servicesIn(namespace).filter((ref) => traits.get(hostKey(ref))?.ports.includes(port) === true);
  });
}

function hostAt(ctx: GenerateContext, body: Query<VirtualHostInput, Uint8Array>, key: ServiceRef & PortQuery): PlainHost | undefined {
  const service = ctx.registry.service(key);
  if (service?.resolution === "alias") return undefined;
  const port = service?.ports.find(({ number, protocol }) => number === key.port && (isHttp(protocol) || protocol === "Auto"));
  if (service === undefined || port === undefined) return undefined;
  const aliases = ctx.lookups.aliases.of(key.host);
  const rules = ctx.lookups.destinationRuleKeys({
    host: key.host,
    clientNamespace: OUTSIDER,
    serviceNamespace: key.namespace,
    labels: undefined,
  });
  const rule = rules.length === 0 ? undefined : ctx.lookups.mergedDestinationRule(rules, key.host);
  return {
    ...refOf(key),
    body: body(hashedHost(ctx, key, { headers: key.headers, hashPolicy: hashPolicyOf(rule, { service, subset: "", port: key.port }) })),
    rules: textOf(rules),
    domains: domainsByNearness(servedAt(service, port), key),
    aliases:
      aliases.length === 0
        ? undefined
        : aliases.map(({ host }) => ({ host, domains: domainsByNearness({ ...service, ...NO_ADDRESSES, host }, key) })),
  };
}

/** An alias is another name of the service, and of the pods behind a headless one; its address it leaves to that. */
const NO_ADDRESSES: Pick<NamedService, "addresses" | "autoAddresses" | "remoteAddresses"> = {
  addresses: [],
  autoAddresses: [],
  remoteAddresses: {},
};

function domainsByNearness(service: NamedService, addressing: Addressing): PlainHost["domains"] {
  const domains = (nearness: Nearness): EncodedDomains => encodeDomains(domainsOf(service, nearness, addressing));
  return { own: domains("own"), foreign: domains("foreign"), none: domains("none") };
}

function sameMembers(a: ReadonlyMap<string, PlainHost>, b: ReadonlyMap<string, PlainHost>): boolean {
  if (a.size !== b.size) return false;
  for (const [key, host] of a) if (b.get(key) !== host) return false;
  return true;
}
