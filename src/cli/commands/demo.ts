import { systemClock } from "../../base/clock.ts";
import { usageError } from "../arguments.ts";
import type { Command } from "../command.ts";
import { runDemo } from "../demo/run-demo.ts";

/** The one command that prints as it goes: it runs until it is interrupted. */
export const demoCommand: Command = {
  name: "demo",
  aliases: [],
  about: "Run a small mesh on this machine and show its traffic move when its configuration is edited",
  operands: "",
  flags: [],
  outputs: ["text"],
  notes: ["Two echo services, a sidecar, a gateway and a control plane run in a temporary directory; Ctrl-C ends and removes all of it."],
  async run(args, host) {
    if (args.operands.length > 0) throw usageError(`${JSON.stringify(args.operands[0])} is not understood; the demo takes no parameters`);
    await runDemo({ clock: systemClock, env: host.env, signal: host.interrupted(), print: (line) => host.out(`${line}\n`) });
    return { data: {}, text: "" };
  },
};
