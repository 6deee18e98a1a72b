import type { Command } from "./command.ts";
import { commandUsage } from "./usage.ts";

/** Text of docs/istioctl.md: what holds for all commands, then what each says of itself. */
export function referencePage(commands: readonly Command[]): string {
  return [
    ...INTRODUCTION,
    ...commands.flatMap((command) => [
      "",
      `## ${command.name}`,
      "",
      "```text",
      commandUsage(command),
      "```",
      ...(MORE[command.name] ?? []),
    ]),
    "",
  ].join("\n");
}

const INTRODUCTION: readonly string[] = [
  "# istioctl",
  "",
  "Looks into a mesh, checks its configuration and starts its proxies. Commands, aliases and flags bear the names of Istio's istioctl where that has them.",
  "",
  "- **Output.** A command finds out data, and `-o` says how to print them: `-o json` and `-o yaml` for programs, a table or text for people. Only the answer goes to",
  "  stdout; what goes wrong is one sentence on stderr.",
  "- **Exit status.** 0 all is well; 1 something is wrong, be it a document that is invalid or a control plane that cannot be reached; 2 bad usage.",
  "- **Which istiod.** `--istiod`, else `ISTIOD_DEBUG_ADDRESS`, else `listen.httpAddr` of `etc/istio/mesh.yaml` under `$ISTIO_HOME` (or the working directory), else",
  "  `http://127.0.0.1:8080`. The debug pages want the token that istiod keeps in `var/lib/istio/debug.token`; it is found under `$ISTIO_HOME` (and then sent to this machine only), or named with `--token-file`.",
];

/** What a usage text is too short for. */
const MORE: Readonly<Record<string, readonly string[]>> = {
  validate: [
    "",
    "Text output has a line for each problem, `file:line: level: field: message [code]`; the codes are in [problems.md](problems.md). `-o json` prints one array with a record for each document:",
    "",
    "```json",
    JSON.stringify(
      [
        {
          file: "etc/istio/conf/shop/reviews.yaml",
          line: 2,
          kind: "VirtualService",
          namespace: "shop",
          name: "reviews",
          valid: false,
          problems: [
            { code: "schema.unknown-field", level: "error", path: "spec.http[0].rout", message: 'HTTPRoute has no field "rout"', line: 9 },
          ],
        },
      ],
      null,
      2,
    ),
    "```",
    "",
    "A kind that is not known here is a warning: the document is ignored, as istiod does. Two documents of the same object are a warning too, since each may be meant for another place.",
  ],
  "proxy-status": [
    "",
    "Named without a proxy, it has a line for each connection. Named with one, it says of each type what was sent and acknowledged when, and of each resource that the proxy refuses why, and whether it keeps an",
    "older version. `-o json` gives what `/debug/syncz` does.",
  ],
  "proxy-config": [
    "",
    "What is shown comes from the control plane, not from Envoy: it is what the proxy acknowledged. `-o json` prints Envoy's own resources; with `--why` each stands under `resource` beside `name`, `version`,",
    "`status` (ACKED, NACKED, REQUESTED) and `why`, the objects it was made from with their file and line. An object whose document is broken now is marked: its last good version is in force.",
    "The endpoint table has weight and locality in place of Istio's OUTLIER CHECK, which only Envoy knows.",
  ],
  bootstrap: [
    "",
    "```sh",
    "istioctl bootstrap --name web --namespace shop --ip 10.0.0.7 --labels app=web,version=v1 > bootstrap.json",
    "envoy -c bootstrap.json",
    "```",
  ],
};
