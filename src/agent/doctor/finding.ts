import type { Clock } from "../../base/clock.ts";
import type { AgentConfig } from "../agent-config.ts";
import type { RunTool } from "../iptables/run-tool.ts";
import type { ServerFacts } from "./server-facts.ts";

/** What an examination found: one sentence, and where something is wrong one that says what to do. */
export interface Finding {
  readonly about: string;
  readonly says: string;
  /** Present: it is wrong. */
  readonly fix?: string;
  /** It could not or need not be examined. */
  readonly skipped?: true;
}

/** What is examined. */
export interface Patient {
  readonly config: AgentConfig;
  readonly clock: Pick<Clock, "now">;
  readonly run: RunTool;
  /** Servers of the control plane that were called, with what they showed of themselves. */
  readonly servers: readonly ServerFacts[];
}

/** Looks at one thing, and changes nothing. */
export type Examination = (patient: Patient) => Promise<Finding>;
