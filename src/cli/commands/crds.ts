import { dump } from "js-yaml";
import { customResourceDefinitions } from "../../config/crd/custom-resource-definition.ts";
import { usageError } from "../arguments.ts";
import type { Command } from "../command.ts";

export const crdsCommand: Command = {
  name: "crds",
  aliases: [],
  about: "Print the CustomResourceDefinitions of Istio's kinds, for kubectl apply -f -",
  operands: "[KIND]...",
  flags: [],
  outputs: ["text", "json"],
  notes: [
    "KIND: only these, by kind, plural or short name. Text is YAML, a document each; JSON is one List.",
    "They are made from the same table that configuration is read and checked with. Rules that take more than a schema are left to the admission webhook.",
  ],
  async run(args) {
    const all = customResourceDefinitions();
    const chosen = args.operands.map((word) => {
      const lower = word.toLowerCase();
      const found = all.find(({ spec: { names } }) =>
        [names.kind.toLowerCase(), names.plural, ...(names.shortNames ?? [])].includes(lower),
      );
      if (found === undefined) throw usageError(`there is no kind ${JSON.stringify(word)} among Istio's`);
      return found;
    });
    const items = chosen.length === 0 ? all : chosen;
    return {
      data: { apiVersion: "v1", kind: "List", items },
      text: items.map((item) => dump(item, { lineWidth: -1, noRefs: true })).join("---\n"),
    };
  },
};
