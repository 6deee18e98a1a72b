import { textAt } from "../json-path.ts";
import type { ProxyResource } from "./dumped-resources.ts";
import { objectOfMetadata, type ProxyConfigFilter, type Section } from "./section.ts";

/** What the name of a cluster says: `outbound|80|v1|reviews.shop.svc.cluster.local`. Other names are taken whole. */
export interface ClusterName {
  readonly direction: string;
  readonly port: string;
  readonly subset: string;
  readonly host: string;
}

/** Takes the name of a cluster apart. */
export function readClusterName(name: string): ClusterName {
  const [direction = "", port = "", subset = "", host = "", ...more] = name.split("|");
  return host === "" && subset === "" && port === ""
    ? { direction: "", port: "", subset: "", host: name }
    : { direction, port, subset, host: [host, ...more].join("|") };
}

/** `istioctl proxy-config cluster`. */
export function clusterSection(
  clusters: readonly ProxyResource[],
  filter: Pick<ProxyConfigFilter, "fqdn" | "port" | "direction" | "subset">,
): Section {
  const named = clusters.map((resource) => ({ resource, name: readClusterName(resource.name) }));
  const kept = named.filter(
    ({ name }) =>
      (filter.fqdn === undefined || name.host === filter.fqdn) &&
      (filter.port === undefined || name.port === String(filter.port)) &&
      (filter.direction === undefined || name.direction.startsWith(filter.direction)) &&
      (filter.subset === undefined || name.subset === filter.subset),
  );
  return {
    title: "clusters",
    header: ["SERVICE FQDN", "PORT", "SUBSET", "DIRECTION", "TYPE", "DESTINATION RULE"],
    entries: kept.map(({ resource, name }) => ({
      resource,
      rows: [[name.host, name.port, name.subset, name.direction, typeOf(resource), ruleOf(resource)]],
    })),
  };
}

/** STATIC is the default in Envoy's API, so its JSON leaves it out. */
const typeOf = ({ resource }: ProxyResource): string => textAt(resource, "type") || textAt(resource, "clusterType", "name") || "STATIC";

const ruleOf = ({ resource }: ProxyResource): string => objectOfMetadata(textAt(resource, "metadata", "filterMetadata", "istio", "config"));
