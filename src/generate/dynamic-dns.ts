import type { DynamicDnsInput } from "../envoy/cluster/index.ts";
import type { DnsCacheInput } from "../envoy/dns-cache.ts";
import type { Protocol } from "../model/protocol.ts";
import type { ClientTls } from "./clusters/client-tls.ts";

/** Names of a service with resolution DYNAMIC_DNS that a proxy has resolved, called as Istio calls them. */
export const serviceDnsCache = (host: string, family: DnsCacheInput["family"]): DnsCacheInput => ({
  name: `${host}_dfp_dns_cache`,
  family,
});

/** Envoy keeps so many names by itself; said here so that it shows. */
const MAX_HOSTS = 1_024;

/** Names that no service declares (outboundTrafficPolicy ALLOW_ANY_DYNAMIC_DNS). */
export const anyNameDnsCache = (family: DnsCacheInput["family"]): DnsCacheInput => ({
  name: "allow_any_dfp_dns_cache",
  family,
  maxHosts: MAX_HOSTS,
});

/** Protocols whose first bytes name the host. */
export const namesHost = (protocol: Protocol): boolean => ["HTTP", "HTTP2", "GRPC", "TLS"].includes(protocol);

/** Discovery by name. Where SNI and the verified name do not both follow the request, Envoy wants to hear that this is meant. */
export const byName = (
  cache: DnsCacheInput,
  { autoSni, autoSanValidation }: Pick<ClientTls, "autoSni" | "autoSanValidation">,
): DynamicDnsInput => ({
  cache,
  fixedNames: !(autoSni && autoSanValidation),
});
