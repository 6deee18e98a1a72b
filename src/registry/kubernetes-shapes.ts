import type { Labels } from "../base/labels.ts";

export interface ServiceSpec {
  readonly type?: string;
  readonly clusterIP?: string;
  readonly clusterIPs?: readonly string[];
  readonly externalName?: string;
  readonly selector?: Labels;
  readonly ports?: readonly {
    readonly name?: string;
    readonly port: number;
    readonly targetPort?: number | string;
    readonly protocol?: string;
    readonly appProtocol?: string;
  }[];
  readonly internalTrafficPolicy?: string;
  readonly trafficDistribution?: string;
  readonly publishNotReadyAddresses?: boolean;
}

export interface ObjectReference {
  readonly kind?: string;
  readonly namespace?: string;
  readonly name?: string;
}

export interface EndpointSlice {
  readonly addressType?: string;
  readonly endpoints?: readonly {
    readonly addresses: readonly string[];
    readonly conditions?: { readonly ready?: boolean; readonly serving?: boolean; readonly terminating?: boolean };
    readonly hostname?: string;
    readonly nodeName?: string;
    readonly targetRef?: ObjectReference;
  }[];
  readonly ports?: readonly { readonly name?: string; readonly port?: number; readonly protocol?: string }[];
}

export interface Endpoints {
  readonly subsets?: readonly {
    readonly addresses?: readonly EndpointAddress[];
    readonly notReadyAddresses?: readonly EndpointAddress[];
    readonly ports?: readonly { readonly name?: string; readonly port?: number; readonly protocol?: string }[];
  }[];
}

export interface EndpointAddress {
  readonly ip: string;
  readonly hostname?: string;
  readonly nodeName?: string;
  readonly targetRef?: ObjectReference;
}

export interface Pod {
  readonly spec?: {
    readonly nodeName?: string;
    readonly hostNetwork?: boolean;
    readonly serviceAccountName?: string;
    readonly hostname?: string;
    readonly subdomain?: string;
    readonly containers?: readonly { readonly ports?: readonly { readonly name?: string; readonly containerPort: number }[] }[];
  };
  readonly status?: {
    readonly phase?: string;
    readonly podIP?: string;
    readonly podIPs?: readonly { readonly ip: string }[];
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
  };
}
