import {
  CLASS_IN,
  type DnsAnswer,
  type DnsRecord,
  RCODE,
  RECORD,
  readHeader,
  readQuery,
  udpLimit,
  writeAnswer,
  writeRefusal,
} from "../../../src/agent/dns/dns-message.ts";
import type { Resolve } from "../../../src/agent/dns/resolver.ts";
import { type Service, type ServiceState, slicesOf, usable } from "./service.ts";

const DOMAIN = "cluster.local";
const TTL_SECONDS = 5;
const LARGEST_TCP = 65_535;

/**
 * Answers for names as the DNS of a cluster does: `service.namespace.svc.cluster.local`, pods of headless Services, ExternalNames, and the names a
 * test gives. Nobody else is asked: other names do not exist.
 */
export function clusterResolver(state: () => ServiceState, names: Readonly<Record<string, readonly string[]>>): Resolve {
  return async (message, transport) => {
    const query = readQuery(message);
    if (query === undefined) {
      const header = readHeader(message);
      return header === undefined || header.isResponse ? undefined : writeRefusal(header.id, RCODE.FORMERR);
    }
    const { name, type, class: number } = query.question;
    const found = number === CLASS_IN ? lookUp(state(), names, name) : undefined;
    return writeAnswer(query, answerOf(found, type), transport === "udp" ? udpLimit(query) : LARGEST_TCP);
  };
}

function answerOf(found: readonly DnsRecord[] | undefined, type: number): DnsAnswer {
  const records = (found ?? []).filter((record) => record.type === "CNAME" || RECORD[record.type] === type);
  return { rcode: found === undefined ? RCODE.NXDOMAIN : RCODE.NOERROR, authoritative: true, records };
}

/** Undefined where there is no such name: not the same as a name without addresses. */
function lookUp(state: ServiceState, names: Readonly<Record<string, readonly string[]>>, asked: string): readonly DnsRecord[] | undefined {
  const name = asked.toLowerCase();
  const given = names[name];
  if (given !== undefined) return given.map((address) => recordOf(asked, address));
  const labels = name.split(".");
  const [service, namespace, svc] = labels.slice(-5, -2);
  if (labels.slice(-2).join(".") !== DOMAIN || svc !== "svc") return undefined;
  const found = state.services.find(({ metadata }) => metadata.name === service && metadata.namespace === namespace);
  if (found === undefined || labels.length > 6) return undefined;
  return labels.length === 6 ? podRecords(state, found, asked) : serviceRecords(state, { names, service: found, asked });
}

function serviceRecords(
  state: ServiceState,
  { names, service, asked }: { readonly names: Parameters<typeof lookUp>[1]; readonly service: Service; readonly asked: string },
): readonly DnsRecord[] {
  const { type, externalName = "", clusterIP } = service.spec;
  if (type === "ExternalName") {
    const further = externalName === asked ? [] : (lookUp(state, names, externalName) ?? []);
    return [{ type: "CNAME", name: asked, ttl: TTL_SECONDS, target: externalName }, ...further];
  }
  if (clusterIP !== "None") return [recordOf(asked, clusterIP ?? "")];
  const endpoints = slicesOf(state, service).flatMap(({ endpoints: some }) => some ?? []);
  return usable(endpoints).map(({ addresses }) => recordOf(asked, addresses[0] ?? ""));
}

/** `pod-0.service.namespace.svc.cluster.local`; undefined where no pod has that host name. */
function podRecords(state: ServiceState, service: Service, asked: string): readonly DnsRecord[] | undefined {
  const [hostname] = asked.toLowerCase().split(".");
  const endpoints = usable(slicesOf(state, service).flatMap(({ endpoints: some }) => some ?? []));
  const found = endpoints.filter((endpoint) => endpoint.hostname === hostname);
  return found.length === 0 ? undefined : found.map(({ addresses }) => recordOf(asked, addresses[0] ?? ""));
}

const recordOf = (name: string, address: string): DnsRecord => ({
  type: "A",
  name,
  ttl: TTL_SECONDS,
  address: Uint8Array.from(address.split("."), Number),
});
