import { dump } from "js-yaml";
import { lineDiff } from "../print/line-diff.ts";
import type { ChangeCounts, DiffReport, ReportedResource, TouchedClass } from "./diff-report.ts";

/** What people call a resource of each type, one and many. */
const NOUNS: Readonly<Record<string, readonly [string, string]>> = {
  cds: ["cluster", "clusters"],
  eds: ["assignment", "assignments"],
  lds: ["listener", "listeners"],
  rds: ["route table", "route tables"],
  ecds: ["extension", "extensions"],
  vhds: ["virtual host", "virtual hosts"],
  nds: ["name table", "name tables"],
  bds: ["bootstrap", "bootstraps"],
};

const MARKS = { added: "+", changed: "~", removed: "-", failed: "!" } as const satisfies Record<ReportedResource["change"], string>;

/** More names than this on a line help nobody. */
const MOST_NAMES = 6;

/** The report for people: the objects, a sentence on what they do, and for each group of proxies the resources that differ. */
export function diffText(report: DiffReport): string {
  const objects = report.objects.map(({ change, object, place }) => `${object} ${change}${place === "" ? "" : ` (${place})`}`);
  const parts = [
    objects.join("\n"),
    summary(report),
    ...report.classes.map(classText),
    report.problems.map(({ level, object, path, message, code }) => `${level}: ${object}: ${path}: ${message} [${code}]`).join("\n"),
    report.notes.map((note) => `note: ${note}`).join("\n"),
  ];
  return parts.filter((part) => part !== "").join("\n\n");
}

function summary({ proxies, touched, resources }: DiffReport): string {
  if (touched === 0) return `no differences: ${many(proxies, "proxy", "proxies")} would be configured as before`;
  const counts = Object.entries(resources).flatMap(([type, byChange]) => countsText(type, byChange));
  return `${touched} of ${many(proxies, "proxy", "proxies")} touched: ${counts.join(", ")}`;
}

function countsText(type: string, counts: ChangeCounts): readonly string[] {
  const [one, more] = nounOf(type);
  return (["changed", "added", "removed", "failed"] as const).flatMap((change) => {
    const count = counts[change];
    return count === undefined ? [] : [`${many(count, one, more)} ${change}`];
  });
}

const nounOf = (type: string): readonly [string, string] => NOUNS[type] ?? [type, type];

const many = (count: number, one: string, more: string): string => `${count} ${count === 1 ? one : more}`;

function classText({ proxies, resources }: TouchedClass): string {
  const names = proxies.slice(0, MOST_NAMES).map(proxyText);
  const rest = proxies.length - names.length;
  const width = Math.max(...resources.map(({ type }) => nounOf(type)[0].length));
  return [
    `${names.join(", ")}${rest === 0 ? "" : ` and ${rest} more`}:`,
    ...resources.flatMap((resource) => [
      `  ${MARKS[resource.change]} ${nounOf(resource.type)[0].padEnd(width)}  ${resource.name}${resource.message === undefined ? "" : `: ${resource.message}`}`,
      ...contentLines(resource).map((line) => `      ${line}`),
    ]),
  ].join("\n");
}

function proxyText({ type, name, namespace, assumed }: TouchedClass["proxies"][number]): string {
  if (assumed) return `any ${name} of ${namespace}`;
  return `${name}.${namespace}${type === "router" ? " (gateway)" : ""}`;
}

function contentLines({ before, after }: ReportedResource): readonly string[] {
  if (before === undefined && after === undefined) return [];
  const yaml = (json: ReportedResource["before"]): string => (json === undefined ? "" : dump(json, { lineWidth: -1, noRefs: true }));
  return lineDiff(yaml(before), yaml(after));
}
