import { hostPort } from "../../base/address.ts";
import type { Json } from "../../debug/api-types.ts";
import { at, listAt, textAt } from "../json-path.ts";
import type { ProxyResource } from "./dumped-resources.ts";
import type { ProxyConfigFilter, Section } from "./section.ts";

interface EndpointRow {
  readonly address: string;
  readonly port: string;
  readonly status: string;
  readonly weight: string;
  readonly locality: string;
}

type EndpointFilter = Pick<ProxyConfigFilter, "address" | "port" | "cluster" | "status">;

/** `istioctl proxy-config endpoint`: assignments, and the endpoints written into clusters that need none. */
export function endpointSection(
  assignments: readonly ProxyResource[],
  clusters: readonly ProxyResource[],
  filter: EndpointFilter,
): Section {
  const inline = clusters.flatMap((cluster) => {
    const assignment = at(cluster.resource, "loadAssignment");
    return assignment === undefined ? [] : [{ ...cluster, resource: assignment }];
  });
  const entries = [...assignments, ...inline].filter(({ name }) => filter.cluster === undefined || name === filter.cluster);
  return {
    title: "endpoints",
    header: ["ENDPOINT", "STATUS", "WEIGHT", "LOCALITY", "CLUSTER"],
    entries: entries.flatMap((resource) => {
      const rows = endpointsOf(resource.resource).filter((row) => keeps(row, filter));
      return rows.length === 0
        ? []
        : [{ resource, rows: rows.map((row) => [addressText(row), row.status, row.weight, row.locality, resource.name]) }];
    }),
  };
}

function keeps(row: EndpointRow, filter: EndpointFilter): boolean {
  return (
    (filter.address === undefined || row.address === filter.address) &&
    (filter.port === undefined || row.port === String(filter.port)) &&
    (filter.status === undefined || row.status === filter.status.toUpperCase())
  );
}

function endpointsOf(assignment: Json): readonly EndpointRow[] {
  return listAt(assignment, "endpoints").flatMap((group) => {
    const { region, zone, subzone } = {
      region: textAt(group, "locality", "region"),
      zone: textAt(group, "locality", "zone"),
      subzone: textAt(group, "locality", "subZone"),
    };
    const locality = [region, zone, subzone].join("/").replace(/\/+$/, "");
    return listAt(group, "lbEndpoints").map((endpoint) => {
      const address = at(endpoint, "endpoint", "address");
      return {
        address:
          textAt(address, "socketAddress", "address") ||
          textAt(address, "pipe", "path") ||
          textAt(address, "envoyInternalAddress", "serverListenerName"),
        port: textAt(address, "socketAddress", "portValue"),
        status: textAt(endpoint, "healthStatus") || "HEALTHY",
        weight: textAt(endpoint, "loadBalancingWeight"),
        locality,
      };
    });
  });
}

function addressText({ address, port }: EndpointRow): string {
  return port === "" ? address : hostPort(address, port);
}
