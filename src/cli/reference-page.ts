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
  "- **Exit status.** 0 all is well; 1 something is wrong, be it a document that is invalid or a control plane that cannot be reached; 2 bad usage. `diff` has its own, below.",
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
  diff: [
    "",
    "The change is tried on top of the current configuration, in memory; what it does not reach is not generated again. Objects of the files replace those of the same kind, namespace and name, or are added.",
    "",
    "```text",
    "$ istioctl diff -f reviews.yaml",
    "DestinationRule/shop/reviews added (reviews.yaml:1)",
    "",
    "3 of 5 proxies touched: 2 clusters changed, 1 cluster added, 1 assignment added",
    "",
    "reviews-1.shop, reviews-2.shop:",
    "  ~ cluster     inbound|80||",
    "  + cluster     outbound|80|v1|reviews.shop.svc.cluster.local",
    "  ~ cluster     outbound|80||reviews.shop.svc.cluster.local",
    "  + assignment  outbound|80|v1|reviews.shop.svc.cluster.local",
    "",
    "cart-1.shop:",
    "  + cluster     outbound|80|v1|reviews.shop.svc.cluster.local",
    "  ~ cluster     outbound|80||reviews.shop.svc.cluster.local",
    "  + assignment  outbound|80|v1|reviews.shop.svc.cluster.local",
    "```",
    "",
    "- `--full` adds the lines of YAML that differ in each resource, or with `-o json` its content `before` and `after`. Secrets written into a resource are shown as `[redacted]`.",
    "- What the change makes wrong between objects (a route to a host that nobody has, a gateway without its certificate) is listed with its [code](problems.md); what was wrong before is not.",
    "- `-o json` is one object: `objects`, `proxies` (how many were looked at), `touched`, `resources` (counts by type and change), `classes` (groups of proxies with the resources that differ for them), `problems`,",
    "  `notes`, and `queriesRun`, what the change cost.",
    '- Workloads that differ in nothing but their address are asked about once. Pods that say `sidecar.istio.io/inject: "false"`, pods on the host\'s network and endpoints outside the mesh have no proxy.',
    "- What is not on disk (a cluster, another control plane) is not read; a note says so. Secrets reach proxies over SDS and are not compared.",
    "- `--connected` takes who is there from istiod; what they would be sent is worked out here all the same, from the files of `--base`.",
  ],
  crds: [
    "",
    "The definitions are made from the table of kinds (`src/config/kinds`), the protobuf messages and the bounds and rules of Istio's own definitions. Nothing generated is kept: `istioctl crds | kubectl apply -f -`.",
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
