import type { TableGroup } from "../print/table.ts";
import { table } from "../print/table.ts";
import type { ProxyResource } from "./dumped-resources.ts";

/** The resources of one type that were asked for, and the rows a person sees of each. */
export interface Section {
  readonly title: string;
  readonly header: readonly string[];
  readonly entries: readonly SectionEntry[];
}

export interface SectionEntry extends Group {
  readonly resource: ProxyResource;
  /** Parts of it that are resources of their own. */
  readonly parts?: readonly Group[];
}

/** Rows that a person sees of something, and how it stands with that. */
interface Group {
  readonly resource: Pick<ProxyResource, "status" | "error" | "why">;
  readonly rows: readonly (readonly string[])[];
}

/** What to keep. Undefined keeps everything. */
export interface ProxyConfigFilter {
  readonly fqdn: string | undefined;
  readonly port: number | undefined;
  readonly direction: string | undefined;
  readonly subset: string | undefined;
  readonly name: string | undefined;
  readonly address: string | undefined;
  readonly type: string | undefined;
  readonly cluster: string | undefined;
  readonly status: string | undefined;
}

/** Shows everything. */
export const NO_FILTER: ProxyConfigFilter = {
  fqdn: undefined,
  port: undefined,
  direction: undefined,
  subset: undefined,
  name: undefined,
  address: undefined,
  type: undefined,
  cluster: undefined,
  status: undefined,
};

/** The table of a section. What is not acknowledged says so, and with `why` each resource is followed by the objects it was made from. */
export function sectionTable({ title, header, entries }: Section, why: boolean): string {
  if (entries.length === 0) return `no ${title}`;
  return table(
    header,
    entries.flatMap((entry) => [entry, ...(entry.parts ?? [])].map((group) => groupOf(group, why))),
  );
}

function groupOf({ resource, rows }: Group, why: boolean): TableGroup {
  const state =
    resource.status === "NACKED"
      ? [`refused by the proxy: ${resource.error ?? ""}`]
      : resource.status === "REQUESTED"
        ? ["not acknowledged yet"]
        : [];
  const width = Math.max(0, ...resource.why.map(({ object }) => object.length));
  const origins = resource.why.map(({ object, at, stale }) =>
    `${object.padEnd(width)}  ${at ?? ""}${stale === true ? " (broken there; last good version in force)" : ""}`.trimEnd(),
  );
  return {
    rows,
    notes: [...state, ...(why ? (origins.length > 0 ? origins : ["no object: made from the mesh configuration alone"]) : [])],
  };
}

/** Name and namespace of the object that Istio's metadata `config` names: `/apis/…/namespaces/shop/virtual-service/reviews` is `reviews.shop`. */
export function objectOfMetadata(config: string): string {
  const match = /\/namespaces\/([^/]+)\/[^/]+\/([^/]+)$/.exec(config);
  return match === null ? "" : `${match[2]}.${match[1]}`;
}
