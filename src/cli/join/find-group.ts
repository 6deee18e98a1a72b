import { EdgeError } from "../../base/errors.ts";
import type { ConfigObject, RawObject } from "../../config/object.ts";
import { readObject } from "../../config/read-object.ts";
import type { ConfigRecord } from "../../debug/api-types.ts";
import type { WorkloadGroup } from "../../gen/istio/networking/v1alpha3/workload_group_pb.js";
import { type Arguments, usageError } from "../arguments.ts";
import type { Host } from "../command.ts";
import { istiodClient } from "../istiod-client.ts";
import { readTargets } from "../validate/read-targets.ts";

/** The WorkloadGroup that the flags mean: of a file (`-f`), else the one that istiod has (`--name`, `-n`). */
export async function findGroup(args: Arguments, host: Host): Promise<ConfigObject<WorkloadGroup>> {
  const file = args.text("file");
  const name = args.text("name");
  const namespace = args.text("namespace");
  if (file === undefined && (name === undefined || namespace === undefined))
    throw usageError("name a file with a WorkloadGroup (-f), or the name and namespace of one that istiod has (--name, -n)");
  const documents =
    file === undefined ? await istiodGroups(namespace ?? "", args, host) : (await readTargets([file], host, namespace)).documents;
  const found = documents
    .map((raw) => readObject(raw))
    .filter(
      ({ ref }) =>
        ref?.kind === "WorkloadGroup" &&
        (name === undefined || ref.name === name) &&
        (namespace === undefined || ref.namespace === namespace),
    );
  const where = file ?? `namespace ${namespace}`;
  const [one, ...others] = found;
  const unread = documents.find(({ fault }) => fault !== undefined);
  if (one === undefined && unread !== undefined) throw new EdgeError("file_unreadable", `${where}: ${unread.fault ?? ""}`);
  if (one === undefined) throw new EdgeError("not_found", `there is no WorkloadGroup${name === undefined ? "" : ` ${name}`} in ${where}`);
  if (others.length > 0) throw usageError(`${where} holds ${found.length} WorkloadGroups; choose one with --name`);
  const [problem] = one.problems.filter(({ level }) => level === "error");
  if (one.object === undefined)
    throw new EdgeError(
      "file_unreadable",
      `the WorkloadGroup in ${where} is not valid: ${problem?.path.join(".") ?? ""} ${problem?.message ?? ""}`,
    );
  return one.object as ConfigObject<WorkloadGroup>;
}

async function istiodGroups(namespace: string, args: Arguments, host: Host): Promise<readonly RawObject[]> {
  const istiod = await istiodClient(args, host);
  const records = await istiod.get<readonly ConfigRecord[]>(`/debug/configz?type=WorkloadGroup&namespace=${encodeURIComponent(namespace)}`);
  return records.map(({ origin: _, ...content }, index) => ({ origin: { source: istiod.address }, slot: String(index), content }));
}
