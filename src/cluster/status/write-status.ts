import { KINDS } from "../../config/kinds/index.ts";
import type { ObjectReport, StatusMetrics } from "../../config/status/object-report.ts";
import { wantedStatus } from "../../config/status/wanted-status.ts";
import type { KubeClient } from "../../kube/kube-client.ts";
import type { ResourceType } from "../../kube/resource-type.ts";

const DEFS = new Map(KINDS.map((def) => [def.kind, def]));

/** How the API server calls the kind of an object; undefined for one that is none of ours. */
export function resourceOf({ ref, head }: Pick<ObjectReport, "ref" | "head">): ResourceType | undefined {
  const def = DEFS.get(ref.kind);
  if (def === undefined || head.version === "") return undefined;
  return { group: def.group, version: head.version, plural: def.plural, namespaced: def.scope === "Namespaced" };
}

export interface WriteOptions {
  readonly client: Pick<KubeClient, "get" | "patch">;
  readonly now: number;
  readonly signal: AbortSignal;
}

/**
 * Brings the status of one object up to date, and touches nothing of it that others wrote. Throws `KubeError`, a conflict where somebody else wrote at the
 * same time.
 */
export async function writeStatus(
  report: ObjectReport,
  { client, now, signal }: WriteOptions,
): Promise<Parameters<StatusMetrics["wrote"]>[0]> {
  const type = resourceOf(report);
  if (type === undefined) return "gone";
  const { namespace, name } = report.ref;
  const { metadata, status } = await client.get(type, { namespace, name }, signal);
  if (metadata.deletionTimestamp !== undefined) return "gone";
  // It is another by now: what is to be said of that is on its way.
  if ((metadata.generation ?? 0) !== report.head.generation) return "outdated";
  const wanted = wantedStatus(report, status, now);
  if (wanted === undefined) return "unchanged";
  const { resourceVersion, uid } = metadata;
  const messages = wanted.validationMessages.length === 0 ? null : wanted.validationMessages;
  const body = { metadata: { resourceVersion, uid }, status: { ...wanted, validationMessages: messages } };
  await client.patch(type, { namespace, name, subresource: "status" }, { as: "merge", body, fieldManager: "istiod-status", signal });
  return "written";
}
