import { dump } from "js-yaml";
import type { Outcome, OutputFormat } from "../command.ts";

/** What goes to stdout. The data as JSON or YAML for scripts, else the text for people. */
export function renderOutcome(outcome: Outcome, format: OutputFormat): string {
  switch (format) {
    case "json":
      return `${JSON.stringify(outcome.data, null, 2)}\n`;
    case "yaml":
      return dump(JSON.parse(JSON.stringify(outcome.data)), { lineWidth: -1, noRefs: true });
    default:
      return outcome.text === "" || outcome.text.endsWith("\n") ? outcome.text : `${outcome.text}\n`;
  }
}
