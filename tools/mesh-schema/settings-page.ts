import { AGENT_SETTINGS } from "../../src/settings/agent-table.ts";
import { INTERCEPT_FLAGS, INTERCEPT_VARIABLES, type InterceptFlag, variablesOfFlag } from "../../src/settings/intercept-table.ts";
import type { SettingDef } from "../../src/settings/setting-def.ts";
import { SETTINGS } from "../../src/settings/table.ts";

/** docs/settings.md: every environment variable we honour. */
export function settingsPage(): string {
  const rows = Object.values<SettingDef>(SETTINGS).map(
    (def) =>
      `| \`${def.env}\` | ${typeText(def)} | ${defaultText(def)} | ${def.restart === true ? "restart" : "reload"} | ${aboutText(def)} |`,
  );
  const agentRows = Object.values<SettingDef>(AGENT_SETTINGS).map(
    (def) => `| \`${def.env}\` | ${typeText(def)} | ${defaultText(def)} | ${aboutText(def)} |`,
  );
  const interceptRows = [
    ...Object.entries<InterceptFlag>(INTERCEPT_FLAGS).map(([name, flag]) => {
      const flags = [...(flag.short === undefined ? [] : [`-${flag.short}`]), `--${name}`];
      return `| ${codes(variablesOfFlag(name, flag))} | ${codes(flags)} | ${codes([flag.default ?? ""])} | ${flag.about} |`;
    }),
    ...Object.entries(INTERCEPT_VARIABLES).map(([name, one]) => `| \`${name}\` | | ${codes([one.default])} | ${one.about} |`),
  ];
  return `# Settings

Every environment variable that istiod honours. The same names may stand under \`env:\` in \`etc/istio/mesh.yaml\`, except those with ‡; the real environment wins.
A value that cannot be read stops istiod at start-up with one sentence; on a reload the last good configuration stays in force.
A variable that looks like one of these (\`PILOT_…\`, \`ISTIO_…\`) but is not known is ignored with one line in the log.
An empty variable counts as unset, except for addresses, where empty turns the port off.

Names, types and defaults are Istio's; † marks a variable that today's Istio does not have. "change by" says what makes a change of \`env:\` take effect.

| variable | type | default | change by | meaning |
| --- | --- | --- | --- | --- |
${rows.join("\n")}

## The agent

What \`istio-agent\` honours, from the environment or from \`var/lib/istio/envoy/sidecar.env\`. Beside these, \`ISTIO_META_X\` is the entry X of node metadata,
\`ISTIO_METAJSON_LABELS\` and \`ISTIO_METAJSON_ANNOTATIONS\` are maps, and any other \`ISTIO_METAJSON_…\` is an object whose entries are node metadata.

| variable | type | default | meaning |
| --- | --- | --- | --- |
${agentRows.join("\n")}

## Interception

What \`istio-agent iptables\` honours: flags, and variables for those that are not given, from the environment or \`sidecar.env\`. Of several variables the first wins.

| variable | flag | default | meaning |
| --- | --- | --- | --- |
${interceptRows.join("\n")}

Durations are written as in Go: \`100ms\`, \`5s\`, \`1h30m\`. Addresses are \`host:port\`, \`:port\` for all interfaces, or \`[v6]:port\`; port 0 lets the system choose.
All other settings of a mesh stand in \`mesh.yaml\`: see [mesh.schema.json](mesh.schema.json), which editors can use to complete and check it.
`;
}

const codes = (words: readonly string[]): string =>
  words
    .filter((word) => word !== "")
    .map((word) => `\`${word}\``)
    .join(", ");
const typeText = (def: SettingDef): string => (def.choices === undefined ? def.type : def.choices.join(", "));
const defaultText = (def: SettingDef): string => (def.default === undefined || def.default === "" ? "" : `\`${def.default}\``);
const aboutText = (def: SettingDef): string => `${def.about}${def.own === true ? " †" : ""}${def.envOnly === true ? " ‡" : ""}`;
