import type { Command } from "../command.ts";
import { bootstrapCommand } from "./bootstrap.ts";
import { caRotateCommand } from "./ca-rotate.ts";
import { crdsCommand } from "./crds.ts";
import { demoCommand } from "./demo.ts";
import { diffCommand } from "./diff.ts";
import { kubeInjectCommand } from "./kube-inject.ts";
import { proxyConfigCommand } from "./proxy-config.ts";
import { proxyStatusCommand } from "./proxy-status.ts";
import { tagGenerateCommand } from "./tag-generate.ts";
import { tagListCommand } from "./tag-list.ts";
import { tagRemoveCommand } from "./tag-remove.ts";
import { tagSetCommand } from "./tag-set.ts";
import { validateCommand } from "./validate.ts";
import { versionCommand } from "./version.ts";
import { workloadEntryCommand } from "./workload-entry.ts";
import { workloadTokenCommand } from "./workload-token.ts";

/** Every command, in the order in which help lists them. A command is added here and nowhere else. */
export const COMMANDS: readonly Command[] = [
  validateCommand,
  diffCommand,
  proxyStatusCommand,
  proxyConfigCommand,
  bootstrapCommand,
  kubeInjectCommand,
  workloadEntryCommand,
  workloadTokenCommand,
  caRotateCommand,
  tagSetCommand,
  tagListCommand,
  tagRemoveCommand,
  tagGenerateCommand,
  crdsCommand,
  demoCommand,
  versionCommand,
];
