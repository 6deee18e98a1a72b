import { resolve } from "node:path";
import { messageRegistry } from "../../wire/json.ts";
import { type Arguments, usageError } from "../arguments.ts";
import type { Command } from "../command.ts";
import { chosenProxies } from "../diff/chosen-proxies.ts";
import { compareWorlds } from "../diff/compare-worlds.ts";
import { currentMesh } from "../diff/current-mesh.ts";
import { diffReport } from "../diff/diff-report.ts";
import { diffText } from "../diff/diff-text.ts";
import { type Question, wantedChange } from "../diff/wanted-changes.ts";
import { baseDirOf, ISTIOD_FLAGS } from "../istiod-client.ts";
import { STDIN } from "../validate/read-targets.ts";
import { validationText } from "./validate.ts";

export const diffCommand: Command = {
  name: "diff",
  aliases: [],
  about: "Show what a change of the configuration would do to which proxies, before it is put in place",
  operands: "[FILE|DIRECTORY|-]...",
  flags: [
    {
      name: "filename",
      short: "f",
      value: "FILE|DIRECTORY|-",
      many: true,
      about: "objects to add or to replace; also mesh.yaml, networks.yaml",
    },
    { name: "remove", value: "KIND/NAMESPACE/NAME", many: true, about: "an object to take away; may be repeated" },
    { name: "prune", about: "what is named is the whole new configuration: take away all objects it does not have" },
    { name: "namespace", short: "n", value: "NAMESPACE", about: "namespace of objects that carry none (default: default)" },
    { name: "base", value: "DIRECTORY", about: "the current configuration (default: $ISTIO_HOME, then the working directory)" },
    { name: "full", about: "show what differs inside each resource" },
    { name: "proxy", value: "NODE", many: true, about: "a proxy to ask about: a node id, or a file with a node or a bootstrap as JSON" },
    { name: "connected", about: "ask about the proxies that are connected to istiod" },
    ...ISTIOD_FLAGS,
  ],
  outputs: ["text", "json", "yaml"],
  notes: [
    "Nothing is changed and no istiod is needed: the configuration is generated here, from the files of the current one.",
    "Without --proxy and --connected the proxies are those the configuration tells of: a gateway for each workload that a Gateway selects, a",
    "sidecar for each other one; where there is no workload, one is assumed.",
    "+ added, ~ changed, - removed, ! cannot be made with the change.",
    "Exit status, as of diff: 0 no proxy is touched, 1 some are, 2 something is wrong (also: what is named is invalid).",
  ],
  troubleStatus: 2,
  async run(args, host) {
    const question = questionOf(args);
    const named = args.text("base");
    const current = await currentMesh(resolve(host.cwd, named ?? baseDirOf(host)), { env: host.env, named: named !== undefined });
    const wanted = await wantedChange(question, current, host);
    if (!wanted.ok) return { data: wanted.records, text: validationText(wanted.records), exitCode: 2 };
    const registry = await messageRegistry();
    const { change } = wanted;
    const comparison = compareWorlds({ current, change, registry, proxies: await chosenProxies(args, host) });
    const report = diffReport({ change, comparison, notes: current.notes, registry: args.has("full") ? registry : undefined });
    return { data: report, text: diffText(report), exitCode: report.touched === 0 ? 0 : 1 };
  },
};

function questionOf(args: Arguments): Question {
  const put = [...args.list("filename"), ...args.operands];
  const remove = args.list("remove");
  if (put.length + remove.length === 0) throw usageError("name files with the change, with -f or without, or objects to --remove");
  if (put.filter((target) => target === STDIN).length > 1) throw usageError("standard input can be read only once");
  const prune = args.has("prune");
  if (prune && put.length === 0) throw usageError("--prune needs the whole new configuration in files");
  return { put, remove, prune, namespace: args.text("namespace") };
}
