import type { Command } from "../command.ts";
import { bootstrapCommand } from "./bootstrap.ts";
import { demoCommand } from "./demo.ts";
import { proxyConfigCommand } from "./proxy-config.ts";
import { proxyStatusCommand } from "./proxy-status.ts";
import { validateCommand } from "./validate.ts";
import { versionCommand } from "./version.ts";

/** Every command, in the order in which help lists them. A command is added here and nowhere else. */
export const COMMANDS: readonly Command[] = [
  validateCommand,
  proxyStatusCommand,
  proxyConfigCommand,
  bootstrapCommand,
  demoCommand,
  versionCommand,
];
