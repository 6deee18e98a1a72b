import type { AgentHost } from "./agent-config.ts";

/** The process that a command of the agent runs in. */
export interface CommandHost extends AgentHost {
  /** Prints to standard output. */
  print(text: string): void;
}

/** Runs to its end and gives the exit status. Throws `EdgeError` where it cannot. */
export type Command = (args: readonly string[], host: CommandHost) => Promise<number>;

const iptables = async (): Promise<Command> => (await import("./iptables/iptables-command.ts")).iptablesCommand;
const cleanIptables = async (): Promise<Command> => {
  const command = await iptables();
  return (args, host) => command(["clean", ...args], host);
};

/** Commands besides running the proxy, each loaded when it is called. The long names are those of Istio's agent, which injected pods use. */
export const COMMANDS: Readonly<Record<string, () => Promise<Command>>> = {
  doctor: async () => (await import("./doctor/doctor-command.ts")).doctorCommand,
  iptables,
  "istio-iptables": iptables,
  "istio-clean-iptables": cleanIptables,
  wait: async () => (await import("./local-commands.ts")).waitCommand,
  request: async () => (await import("./local-commands.ts")).requestCommand,
};
