import { readFileSync } from "node:fs";
import type { Pod } from "./pod.ts";

const DOMAIN = "cluster.local";

/** The name of the machine that a pod's programs see. */
export function hostnameOf({ spec, metadata }: Pod): string {
  return (spec.hostNetwork === true ? (spec.nodeName ?? "") : (spec.hostname ?? metadata.name)).slice(0, 63);
}

/** Files under /etc that every container of a pod gets from the node. */
export function podFiles(pod: Pod, address: string, dnsAddress: string): Readonly<Record<string, string>> {
  const { metadata, spec } = pod;
  const hostname = hostnameOf(pod);
  const domain = spec.subdomain === undefined ? [] : [`${hostname}.${spec.subdomain}.${metadata.namespace}.svc.${DOMAIN}`];
  const aliases = (spec.hostAliases ?? []).map(({ ip, hostnames = [] }) => `${ip}\t${hostnames.join("\t")}`);
  const hosts = ["127.0.0.1\tlocalhost", "::1\tlocalhost ip6-localhost", `${address}\t${[...domain, hostname].join("\t")}`, ...aliases];
  return { "/etc/hosts": `${hosts.join("\n")}\n`, "/etc/hostname": `${hostname}\n`, "/etc/resolv.conf": resolvConf(pod, dnsAddress) };
}

function resolvConf({ metadata, spec }: Pod, dnsAddress: string): string {
  const { dnsPolicy = "ClusterFirst", dnsConfig = {}, hostNetwork = false } = spec;
  const { nameservers = [], searches = [], options = [] } = dnsConfig;
  const ofCluster = dnsPolicy === "ClusterFirstWithHostNet" || (dnsPolicy === "ClusterFirst" && !hostNetwork);
  if (!ofCluster && dnsPolicy !== "None") return readFileSync("/etc/resolv.conf", "utf8");
  const search = [...(ofCluster ? [`${metadata.namespace}.svc.${DOMAIN}`, `svc.${DOMAIN}`, DOMAIN] : []), ...searches];
  const set = [...(ofCluster ? ["ndots:5"] : []), ...options.map(({ name, value }) => (value === undefined ? name : `${name}:${value}`))];
  return [
    ...[...(ofCluster ? [dnsAddress] : []), ...nameservers].map((server) => `nameserver ${server}\n`),
    search.length === 0 ? "" : `search ${search.join(" ")}\n`,
    set.length === 0 ? "" : `options ${set.join(" ")}\n`,
  ].join("");
}
