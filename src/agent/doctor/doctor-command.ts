import { type Clock, systemClock } from "../../base/clock.ts";
import { EdgeError, messageOf } from "../../base/errors.ts";
import { readAgentConfig } from "../agent-config.ts";
import type { CommandHost } from "../commands.ts";
import { createRunTool } from "../iptables/run-tool.ts";
import { EXAMINATIONS } from "./examinations.ts";
import type { Finding } from "./finding.ts";
import { callServers } from "./server-facts.ts";

const HELP = `istio-agent doctor: looks for what keeps this machine from joining the mesh

usage: istio-agent doctor

Looks at clock, token, roots, control plane, disk, Envoy and iptables; changes nothing. Exits with 1 if something is wrong.
`;

/** `istio-agent doctor`: a line for each thing that was looked at, a second one with what to do where it is wrong. Gives the exit status. */
export async function doctorCommand(args: readonly string[], host: CommandHost): Promise<number> {
  if (args.includes("--help") || args.includes("-h")) {
    host.print(HELP);
    return 0;
  }
  if (args.length > 0)
    throw new EdgeError("usage", `${JSON.stringify(args[0])} is not understood`, { hint: "see istio-agent doctor --help" });
  const findings = await examine(host, systemClock);
  for (const finding of findings) host.print(findingText(finding));
  return findings.some(({ fix }) => fix !== undefined) ? 1 : 0;
}

/** Looks at everything. What cannot be read at all is a finding too. */
export async function examine(host: CommandHost, clock: Clock): Promise<readonly Finding[]> {
  try {
    const config = await readAgentConfig(host);
    const patient = { config, clock, run: createRunTool(host.env), servers: await callServers(config, clock) };
    const findings: Finding[] = [];
    for (const examination of EXAMINATIONS) findings.push(await examination(patient));
    return findings;
  } catch (error) {
    if (!(error instanceof EdgeError)) throw error;
    return [
      {
        about: "settings",
        says: messageOf(error),
        fix: error.hint ?? "correct the variable, in the environment or in var/lib/istio/envoy/sidecar.env",
      },
    ];
  }
}

function findingText({ about, says, fix, skipped }: Finding): string {
  const line = `${fix !== undefined ? "failed" : skipped === true ? "  -   " : "  ok  "}  ${about}: ${says.split("\n")[0] ?? ""}\n`;
  return fix === undefined ? line : `${line}        fix: ${fix}\n`;
}
