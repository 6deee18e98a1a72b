import { usageError } from "../arguments.ts";
import type { Command } from "../command.ts";
import { CLUSTER_FLAGS, withCluster } from "../kube-cluster.ts";
import { table } from "../print/table.ts";
import { allTags } from "../tag/tags.ts";

export const tagListCommand: Command = {
  name: "tag list",
  aliases: ["tag show"],
  about: "Show the tags of a cluster, where they lead and which namespaces they inject",
  operands: "",
  flags: CLUSTER_FLAGS,
  outputs: ["table", "json", "yaml"],
  run: (args, host) =>
    withCluster(args, host, async (client) => {
      if (args.operands.length > 0) throw usageError("all tags are listed; none is named");
      const tags = await allTags(client);
      const rows = tags.map(({ tag, revision, namespaces }) => [tag, revision, namespaces.join(",")]);
      return { data: tags, text: table(["TAG", "REVISION", "NAMESPACES"], [{ rows }]) };
    }),
};
