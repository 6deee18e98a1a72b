import { EdgeError } from "../../base/errors.ts";
import { usageError } from "../arguments.ts";
import type { Command } from "../command.ts";
import { CLUSTER_FLAGS, withCluster } from "../kube-cluster.ts";
import { allTags, configurationsOf, namedTag } from "../tag/tags.ts";

export const tagRemoveCommand: Command = {
  name: "tag remove",
  aliases: ["tag delete"],
  about: "Remove a tag; pods that run stay as they are",
  operands: "TAG",
  flags: [{ name: "skip-confirmation", short: "y", about: "also where namespaces are labelled with it" }, ...CLUSTER_FLAGS],
  outputs: ["text", "json", "yaml"],
  run: (args, host) =>
    withCluster(args, host, async (client) => {
      const tag = namedTag(args);
      const found = await configurationsOf(client, tag);
      if (found.length === 0) throw new EdgeError("not_found", `there is no tag ${JSON.stringify(tag)}`);
      const namespaces = (await allTags(client)).find((one) => one.tag === tag)?.namespaces ?? [];
      if (namespaces.length > 0 && !args.has("skip-confirmation"))
        throw usageError(`new pods of ${namespaces.join(", ")} would have no sidecar; -y removes the tag all the same`);
      for (const { type, object } of found) await client.delete(type, { name: object.metadata.name });
      return { data: { tag, namespaces }, text: `Tag ${tag} is removed.` };
    }),
};
