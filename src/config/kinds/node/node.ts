import { defined } from "../../parse/defined.ts";
import { kubeKind } from "../kube-kind.ts";

/** What a mesh reads of a Node: its labels (they say where it stands) are those of the object, so only its addresses and its kubelet remain. */
export interface Node {
  readonly addresses: readonly { readonly type?: string; readonly address?: string }[];
  /** Version of its kubelet: what a pod there may ask for. */
  readonly kubelet?: string;
}

export const node = kubeKind<Node>({
  kind: "Node",
  group: "",
  versions: ["v1"],
  plural: "nodes",
  singular: "node",
  shortNames: ["no"],
  scope: "Cluster",
  read: (document) => ({
    ...defined({ kubelet: document.object("status").object("nodeInfo").text("kubeletVersion") }),
    addresses: document
      .object("status")
      .objects("addresses")
      .map((one) => defined({ type: one.text("type"), address: one.text("address") })),
  }),
});
