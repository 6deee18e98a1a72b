import type { Command } from "../command.ts";
import { CLUSTER_FLAGS, withCluster } from "../kube-cluster.ts";
import { configurationsOf, namedTag, TAG_FLAGS, tagConfigurations } from "../tag/tags.ts";

export const tagSetCommand: Command = {
  name: "tag set",
  aliases: [],
  about: "Let a tag lead to a revision of the control plane, so that namespaces labelled with the tag need not be labelled anew",
  operands: "TAG",
  flags: [...TAG_FLAGS, ...CLUSTER_FLAGS],
  outputs: ["text", "json", "yaml"],
  notes: [
    "Pods of namespaces labelled istio.io/rev=TAG are injected by the revision from then on; those that run stay as they are until they are made anew.",
    "The tag `default` also stands for istio-injection=enabled, and judges objects without a revision. It is not taken where there is a revision of that name.",
  ],
  run: (args, host) =>
    withCluster(args, host, async (client) => {
      const wanted = await tagConfigurations(client, args);
      for (const { type, object } of wanted)
        await client.patch(type, { name: object.metadata.name }, { as: "apply", body: object, fieldManager: "istioctl", force: true });
      // Under other names it would inject the same pods once more.
      for (const { type, object } of await configurationsOf(client, namedTag(args)))
        if (!wanted.some((one) => one.object.metadata.name === object.metadata.name))
          await client.delete(type, { name: object.metadata.name });
      const [tag, revision] = [namedTag(args), args.text("revision") ?? ""];
      return { data: { tag, revision }, text: `Tag ${tag} leads to revision ${revision}. Label namespaces with istio.io/rev=${tag}.` };
    }),
};
