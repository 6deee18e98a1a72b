import { join } from "node:path";
import { systemClock } from "../../base/clock.ts";
import { EdgeError } from "../../base/errors.ts";
import { beginRotation, cancelRotation, finishRotation, type Rotation, rotationOf, switchRoot } from "../../ca/rotate-root.ts";
import { loadMesh } from "../../config/mesh/load-mesh.ts";
import { meshProblemsSentence } from "../../config/mesh/mesh-problems.ts";
import { readValue } from "../../settings/read-value.ts";
import { type Arguments, usageError } from "../arguments.ts";
import type { Command, Host } from "../command.ts";
import { baseDirOf } from "../istiod-client.ts";

const STEPS = ["status", "begin", "switch", "finish", "cancel"] as const;

export const caRotateCommand: Command = {
  name: "x ca rotate",
  aliases: ["experimental ca rotate"],
  about: "Replace the root of the mesh step by step, so that no workload meets one it does not trust",
  operands: "[begin|switch|finish|cancel]",
  flags: [
    {
      name: "after",
      value: "DURATION",
      about: "how long a step must have been in force before the next (default: DEFAULT_WORKLOAD_CERT_TTL)",
    },
  ],
  outputs: ["text", "json", "yaml"],
  notes: [
    "begin makes a new root and has it trusted beside the old one; switch lets it sign; finish ends the trust in the old one. cancel undoes begin.",
    "It works on etc/cacerts under $ISTIO_HOME; istiod follows within seconds. Without a word it says how far it is.",
    "Agents learn of new roots at once; others with their next certificate, which is what the wait before switch is for.",
    "Before finish, the certificates that the old root signed have to end: give --after if workloads ask for longer ones.",
  ],
  async run(args, host) {
    const [word = "status", ...more] = args.operands;
    const step = STEPS.find((one) => one === word);
    if (step === undefined || more.length > 0) throw usageError(`say one of ${STEPS.slice(1).join(", ")}, or nothing`);
    const rotation = await take(step, args, host);
    return {
      data: { step: rotation.step, ...(rotation.since > 0 && { since: new Date(rotation.since).toISOString() }) },
      text: told(step, rotation),
    };
  },
};

async function take(step: (typeof STEPS)[number], args: Arguments, host: Host): Promise<Rotation> {
  const baseDir = baseDirOf(host);
  const load = await loadMesh(baseDir, host.env);
  if (!load.ok) throw new EdgeError("mesh_config_invalid", meshProblemsSentence(load.problems));
  const { settings, mesh } = load.config;
  const options = { directory: join(baseDir, "etc/cacerts"), clock: systemClock, waitMs: waitOf(args) ?? settings.workloadCertTtlMs };
  switch (step) {
    case "status":
      return rotationOf(options);
    case "begin":
      return beginRotation({ ...options, trustDomain: mesh.trustDomain, rootTtlMs: settings.rootCertTtlMs });
    case "switch":
      return switchRoot(options);
    case "finish":
      return finishRotation(options);
    case "cancel":
      return cancelRotation(options);
  }
}

function waitOf(args: Arguments): number | undefined {
  const text = args.text("after");
  if (text === undefined) return undefined;
  const read = readValue({ type: "duration" }, text);
  if ("fault" in read) throw usageError(`--after: ${read.fault}`);
  return Number(read.value);
}

function told(step: (typeof STEPS)[number], rotation: Rotation): string {
  const since = new Date(rotation.since).toISOString();
  if (rotation.step === "begun")
    return `Since ${since} the new root is trusted beside the old one, which signs. Next: istioctl x ca rotate switch`;
  if (rotation.step === "switched")
    return `Since ${since} the new root signs; the old one is still trusted. Next: istioctl x ca rotate finish`;
  if (step === "finish") return "The old root is trusted no more.";
  return step === "cancel" ? "The new root is forgotten." : "No root is being replaced.";
}
