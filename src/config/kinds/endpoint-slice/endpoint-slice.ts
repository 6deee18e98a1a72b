import { defined } from "../../parse/defined.ts";
import type { Fields } from "../../parse/fields.ts";
import { kubeKind } from "../kube-kind.ts";
import { type ObjectReference, readReference } from "../object-reference.ts";

/** One endpoint of a slice: the addresses of one backend. */
export interface SliceEndpoint {
  readonly addresses: readonly string[];
  readonly conditions: { readonly ready?: boolean; readonly serving?: boolean; readonly terminating?: boolean };
  readonly hostname?: string;
  readonly nodeName?: string;
  readonly zone?: string;
  readonly targetRef?: ObjectReference;
}

/** A port of all endpoints of a slice or subset. */
export interface EndpointPort {
  readonly name?: string;
  readonly port?: number;
  readonly protocol?: string;
  readonly appProtocol?: string;
}

/** What a mesh reads of an EndpointSlice. The Service is named by a label. */
export interface EndpointSlice {
  readonly addressType?: string;
  readonly endpoints: readonly SliceEndpoint[];
  readonly ports: readonly EndpointPort[];
}

export const endpointSlice = kubeKind<EndpointSlice>({
  kind: "EndpointSlice",
  group: "discovery.k8s.io",
  versions: ["v1"],
  plural: "endpointslices",
  singular: "endpointslice",
  shortNames: [],
  read: (document) =>
    defined({
      addressType: document.text("addressType"),
      endpoints: document.objects("endpoints").map(readEndpoint),
      ports: document.objects("ports").map(readEndpointPort),
    }),
});

/** Reads a port as EndpointSlice and Endpoints write it. */
export const readEndpointPort = (port: Fields): EndpointPort =>
  defined({ name: port.text("name"), port: port.number("port"), protocol: port.text("protocol"), appProtocol: port.text("appProtocol") });

function readEndpoint(endpoint: Fields): SliceEndpoint {
  const conditions = endpoint.object("conditions");
  return defined({
    addresses: endpoint.texts("addresses"),
    conditions: defined({
      ready: conditions.flag("ready"),
      serving: conditions.flag("serving"),
      terminating: conditions.flag("terminating"),
    }),
    hostname: endpoint.text("hostname"),
    nodeName: endpoint.text("nodeName"),
    zone: endpoint.text("zone"),
    targetRef: readReference(endpoint, "targetRef"),
  });
}
