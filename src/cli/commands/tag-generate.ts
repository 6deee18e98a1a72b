import { dump } from "js-yaml";
import type { Command } from "../command.ts";
import { CLUSTER_FLAGS, withCluster } from "../kube-cluster.ts";
import { TAG_FLAGS, tagConfigurations } from "../tag/tags.ts";

export const tagGenerateCommand: Command = {
  name: "tag generate",
  aliases: [],
  about: "Print what `tag set` would put in the cluster, for kubectl apply -f -",
  operands: "TAG",
  flags: [...TAG_FLAGS, ...CLUSTER_FLAGS],
  outputs: ["text", "json"],
  notes: ["Text is YAML, a document each; JSON is one List. The revision is looked up in the cluster; nothing is changed there."],
  run: (args, host) =>
    withCluster(args, host, async (client) => {
      const items = (await tagConfigurations(client, args)).map(({ object }) => object);
      return {
        data: { apiVersion: "v1", kind: "List", items },
        text: items.map((item) => dump(item, { lineWidth: -1, noRefs: true })).join("---\n"),
      };
    }),
};
