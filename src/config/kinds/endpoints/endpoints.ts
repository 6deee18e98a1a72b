import { defined } from "../../parse/defined.ts";
import type { Fields } from "../../parse/fields.ts";
import { type EndpointPort, readEndpointPort } from "../endpoint-slice/endpoint-slice.ts";
import { kubeKind } from "../kube-kind.ts";
import { type ObjectReference, readReference } from "../object-reference.ts";

/** One address of a subset. */
export interface EndpointAddress {
  readonly ip: string;
  readonly hostname?: string;
  readonly nodeName?: string;
  readonly targetRef?: ObjectReference;
}

/** What a mesh reads of an Endpoints object, the form before EndpointSlice. It has the name of its Service. */
export interface Endpoints {
  readonly subsets: readonly {
    readonly addresses: readonly EndpointAddress[];
    readonly notReadyAddresses: readonly EndpointAddress[];
    readonly ports: readonly EndpointPort[];
  }[];
}

export const endpoints = kubeKind<Endpoints>({
  kind: "Endpoints",
  group: "",
  versions: ["v1"],
  plural: "endpoints",
  singular: "endpoints",
  shortNames: ["ep"],
  read: (document) => ({
    subsets: document.objects("subsets").map((subset) => ({
      addresses: subset.objects("addresses").map(readAddress),
      notReadyAddresses: subset.objects("notReadyAddresses").map(readAddress),
      ports: subset.objects("ports").map(readEndpointPort),
    })),
  }),
});

const readAddress = (address: Fields): EndpointAddress =>
  defined({
    ip: address.text("ip") ?? "",
    hostname: address.text("hostname"),
    nodeName: address.text("nodeName"),
    targetRef: readReference(address, "targetRef"),
  });
